"""The page about a comparison: what it says, that it cannot be written to by what it shows, and that a real browser shows it well.

The browser is Chromium, without a window and without network; where it is not installed, those tests are skipped.
"""
import json, random, re, shutil, subprocess
from html import escape
from urllib.parse import urlsplit
import pytest
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("scipy")
from mimirag.lab.figures import BETTER, NEUTRAL, WORSE
from mimirag.lab.judge import judge
from mimirag.lab.plan import parse_plan
from mimirag.lab.record import Answered, Code, Record, Row, SetRun
from mimirag.lab.report import report_html, show_comparison, worse, write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\u202e{{ 7*7 }}"
PLAN = '''
name = "title-weight"
question = "Should words of a title weigh more?"
secondary = ["recall@10"]
baseline = {name = "as shipped"}
candidate = {name = "title 4", defaults = {lexical = {title = 4.0}}}
primary = {metric = "nDCG@10", smallest_effect = 0.02}
sets = [{name = "handbook", digest = "%s", queries = 200, source = "nobody (CC0)"}]
guards = [{metric = "recall@10", margin = 0.03}, {metric = "latency", ratio = 1.3}]
''' % ("0"*64)

def made(queries: int = 200, seed: int = 7, name: str = "q", **changes) -> Record:
    "A record in which the candidate wins and loses"
    plan,rng,both = parse_plan(PLAN), random.Random(seed), lambda value: dict(baseline=value, candidate=value)
    def row(number):
        before = rng.choice([0.4, 0.5, 0.6])
        sides = [Answered(values={"nDCG@10": value, "recall@10": 1.0}, outcome="found", confidence=.5, milliseconds=rng.uniform(1, 3), ranking=["d1", f"{name}{number}"]) for value in (before, before+rng.choice([0.3, -0.2, 0, 0]))]
        return Row(set="handbook", query=f"{name}{number}", type=rng.choice(["plain", "table"]), baseline=sides[0], candidate=sides[1])
    arms = dict(baseline=plan.baseline, candidate=plan.candidate)
    fields = dict(name=plan.name, plan=plan, plan_digest="2"*64, declared="2026-03-01T09:00:00+00:00", started="2026-03-01T10:00:00+00:00", finished="2026-03-01T10:09:00+00:00", code=Code(digest="1"*64), environment={"python": "3.11"},
                  arms=arms, defaults={side: arm.tables() for side,arm in arms.items()}, metrics=plan.metrics, ties="by identifier", rows=[row(number) for number in range(queries)],
                  sets={"handbook": SetRun(digest="0"*64, queries=queries, answerable=queries, documents=both(9), passages=both(90), index_bytes=both(4096), build_seconds=both(1.0))})
    return Record(**{**fields, **changes})

def evidence_of(record: Record, text: str) -> dict:
    item = dict(id="d1", where="docs/manual.md, lines 3-9", text=text, relevant=True)
    return {f"{row.set}/{row.query}": dict(text=text, baseline=[item], candidate=[item]*5) for row in record.rows}

def test_the_verdict_comes_first_and_what_got_worse_is_said():
    page = report_html(record := made())
    parts = [page.index(words) for words in ("Inconclusive", ">What was asked</h2>", ">What came out</h2>", "<h3>Guards", ">Every query</h2>", ">By set and by type", ">What got worse</h2>", ">The queries that moved most", ">What it costs</h2>", ">How it can be checked</h2>")]
    assert parts==sorted(parts) and record.digest in page and "2"*64 in page and "nobody (CC0)" in page
    assert f"{judge(record).primary.estimate.losses} queries lost" in page and worse(record, judge(record))

def test_the_same_record_gives_the_same_bytes(tmp_path):
    first,second = (write_report(made(), tmp_path/name, evidence_of(made(), "valve")).read_bytes() for name in ("a.html", "b.html"))
    assert first==second

def test_nothing_shown_can_write_to_the_page():
    record = made(8, name=HOSTILE)
    plan = record.plan.model_copy(update=dict(question=HOSTILE*2))
    record = record.model_copy(update=dict(plan=plan, arms=dict(baseline=plan.baseline.model_copy(update=dict(name=HOSTILE)), candidate=plan.candidate), rows=[row.model_copy(update=dict(type=HOSTILE)) for row in record.rows], environment={HOSTILE: HOSTILE}))
    page = report_html(record, evidence=evidence_of(record, HOSTILE))
    assert "<script" not in page and "<img" not in page and "\u202e" not in page and ">49<" not in page and "&lt;script&gt;" in page
    card = show_comparison(record)._repr_html_()
    assert "<script" not in card and "\u202e" not in card

def test_every_id_stands_once_and_every_link_leads_somewhere():
    page = report_html(made())
    ids = re.findall(r'<[^>]*? id="([^"]+)"', page)
    assert len(ids)==len(set(ids)) and set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)

def test_an_interval_without_zero_is_not_more_than_chance_if_the_test_finds_nothing():
    record = made(40)
    rows = [row.model_copy(update=dict(type="plain", candidate=row.baseline if number > 2 else row.baseline.model_copy(update=dict(values={**row.baseline.values, "nDCG@10": row.baseline.values["nDCG@10"]-(.1, .12, .14)[number]})))) for number,row in enumerate(record.rows)]
    record = record.model_copy(update=dict(rows=rows))
    seen = judge(record).primary.estimate
    assert seen.high < .0005 and seen.p==.25 and "which may be chance" in worse(record, judge(record))[0]

def test_guards_refusals_failures_and_costs_are_among_what_got_worse():
    record = made(60)
    def change(number, row):
        values = {**row.baseline.values, "recall@10": .5}
        if number < 10: return row.model_copy(update=dict(baseline=Answered(milliseconds=1, outcome="none"), candidate=Answered(milliseconds=1, outcome="found", confidence=1.0)))
        return row.model_copy(update=dict(candidate=row.candidate.model_copy(update=dict(values=values, milliseconds=99.0)))) if number > 10 else row.model_copy(update=dict(candidate=Answered(values=dict.fromkeys(values, 0.0), milliseconds=1, error="out of time")))
    record = record.model_copy(update=dict(rows=[change(number, row) for number,row in enumerate(record.rows)], sets={"handbook": record.sets["handbook"].model_copy(update=dict(index_bytes=dict(baseline=4096, candidate=8192)))}))
    said = worse(record, judge(record))
    assert said[0].startswith("recall@10: -0.5") and "more than chance" in said[0] # the sure ones first, and the guard of the same measure not again
    assert sum(item.startswith("recall@10:") for item in said)==1
    for words in ("recall of refusing: 1.000 → 0.000", "1 queries failed in the candidate, 0 in the baseline", "Median time of an answer: ", "Indexes: 2.00 times"): assert any(words in item for item in said), words

def test_the_card_of_a_notebook_holds_no_times_and_no_picture():
    card = show_comparison(made())
    assert "<svg" not in card._repr_html_() and "time" not in card._repr_html_() and str(card).startswith("Inconclusive: ")

def test_nothing_is_loaded_from_elsewhere():
    page = report_html(made(), evidence=evidence_of(made(), "see https://example.org/x"))
    assert not re.findall(r"""(?:src|href|action|data)\s*=\s*["'](?!#)|url\((?!#)|@import""", page.replace('xlink:href="#', "")) and "default-src 'none'" in page

@pytest.mark.parametrize("record", [made(1), made(2), made(0, sets={}), made(30, plan=None, plan_digest=None, declared=None, name="exploration"), made(5, declared="2027-01-01T00:00:00+00:00")], ids=["one query", "two", "none", "exploration", "invalid"])
def test_unusual_records_have_a_page(record):
    page = report_html(record)
    assert "</html>" in page and (record.plan is None)==("Exploration" in page)

def test_queries_without_an_answer_and_failures():
    record = made(20)
    rows = [row.model_copy(update=dict(baseline=Answered(milliseconds=1, outcome="none"), candidate=Answered(milliseconds=1, outcome="found"))) if number < 5 else
            row.model_copy(update=dict(candidate=Answered(values={"nDCG@10": 0.0, "recall@10": 0.0}, milliseconds=1, error="it took <too> long"))) if number < 8 else row for number,row in enumerate(record.rows)]
    page = report_html(record.model_copy(update=dict(rows=rows)))
    assert "it took &lt;too&gt; long" in page and "3 in the candidate" in page and "Saying nothing" in page

def test_what_became_of_a_passage_is_marked():
    record = made(20)
    item = lambda number,relevant=False: dict(id=f"d{number}", where=f"docs/{number}.md", text=f"passage {number}", relevant=relevant)
    page = report_html(record, evidence={f"handbook/{row.query}": dict(text="When?", baseline=[item(1), item(2), item(3)], candidate=[item(4, True), item(2), item(1)]) for row in record.rows})
    first = page[page.index('<details class="moved"'):page.index("</details>")]
    assert re.findall(r'class="mark">([^<]+)<', first)==["now 3", "gone", "new", "was 1"] and "first relevant passage: none → 1" in first

def test_a_page_is_bounded_whatever_it_is_about():
    record = made(3_000)
    broken = [row.model_copy(update=dict(set="x"*5_000, type="y"*5_000, baseline=row.baseline.model_copy(update=dict(error="z"*5_000)))) for row in record.rows]
    page = report_html(record.model_copy(update=dict(rows=broken)))
    assert len(page) < 300_000 and "more of this kind" in page and "and 2,990 more" in page
    text = report_html(made(20), evidence=evidence_of(made(20), "弁は開く"*100_000))
    assert len(text) < 400_000 and 'dir="auto">弁は開く' in text

def test_colours_can_be_read():
    "Contrast of every ink of the page and of the pictures, on its papers, by WCAG 2.2"
    def light(colour):
        parts = [int(colour[place:place+2], 16)/255 for place in (1, 3, 5)]
        return sum(weight*(part/12.92 if part <= .04045 else ((part+.055)/1.055)**2.4) for weight,part in zip((.2126, .7152, .0722), parts))
    colours = {name: "#"+"".join(digit*2 for digit in value) if len(value)==3 else f"#{value}" for name,value in re.findall(r"--(\w+): #(\w+);", report_html(made()))}
    for ink in (colours["ink"], colours["soft"], colours["good"], colours["bad"], BETTER, WORSE, NEUTRAL):
        for paper in (colours["paper"], colours["wash"]): assert (light(paper)+.05)/(light(ink)+.05) >= 4.5, (ink, paper)

def test_a_large_record_stays_a_page():
    record = made(3_000)
    assert len(report_html(record, evidence=evidence_of(record, "x "*300))) < 2_000_000

def chromium(*arguments: str) -> subprocess.CompletedProcess:
    "Run Chromium without a window, a profile of its own, and as few habits of phoning home as it allows"
    return subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr", *arguments],
                          capture_output=True, text=True, timeout=120)

@browser
def test_a_browser_shows_it_on_a_phone_without_complaint(tmp_path):
    record = made()
    page = report_html(record, evidence=evidence_of(record, "A passage with aVeryLongIdentifierThatDoesNotBreakAnywhere_"*4))
    (tmp_path/"frame.html").write_text(f'''<!doctype html><body><p id="said">waiting</p><script>const widths = []</script>
        {"".join(f'<iframe id="f{width}" style="width:{width}px;height:900px;border:0" srcdoc="{escape(page, quote=True)}"></iframe>' for width in (360, 1200))}
        <script>onload = () => {{ for (const frame of document.querySelectorAll("iframe")) {{ const inside = frame.contentDocument, root = inside.documentElement;
            const heads = [...inside.querySelectorAll("h1,h2,h3")].map(head => +head.tagName[1]);
            widths.push({{ asked: frame.clientWidth, needed: root.scrollWidth, pictures: inside.querySelectorAll("svg[role=img][aria-label]").length, cells: inside.querySelectorAll("th:not([scope])").length, jumps: heads.some((level, at) => at && level > heads[at-1]+1) }}) }}
            document.getElementById("said").textContent = JSON.stringify(widths) }}</script>''', "utf-8")
    done = chromium(f"--user-data-dir={tmp_path/'profile'}", "--window-size=1400,1000", "--virtual-time-budget=8000", "--dump-dom", (tmp_path/"frame.html").as_uri())
    found = json.loads(re.search(r'id="said">(\[.*?\])<', done.stdout)[1].replace("&quot;", '"'))
    for frame in found: assert frame["needed"] <= frame["asked"] and frame["pictures"] >= 3 and frame["cells"]==0 and not frame["jumps"], found
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]

@browser
def test_a_browser_prints_it(tmp_path):
    pymupdf = pytest.importorskip("pymupdf")
    record = made()
    write_report(record, tmp_path/"page.html", evidence_of(record, "It opens at 6.2 bar."))
    chromium(f"--user-data-dir={tmp_path/'profile'}", "--no-pdf-header-footer", f"--print-to-pdf={tmp_path/'page.pdf'}", (tmp_path/"page.html").as_uri())
    with pymupdf.open(tmp_path/"page.pdf") as printed:
        text = "\n".join(page.get_text() for page in printed)
        assert 3 <= len(printed) <= 12 and "What got worse" in text and record.digest in text.replace("\n", "")
        for page in printed: assert all(page.rect.contains(block[:4]) for block in page.get_text("blocks"))

@browser
def test_a_browser_asks_nobody_for_anything(tmp_path):
    record = made(20, name=HOSTILE)
    write_report(record, tmp_path/"page.html", evidence_of(record, f"{HOSTILE} https://example.org/x.png"))
    log = tmp_path/"net.json"
    done = chromium(f"--user-data-dir={tmp_path/'profile'}", f"--log-net-log={log}", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=4000", "--dump-dom", (tmp_path/"page.html").as_uri())
    assert "How it can be checked" in done.stdout and "example.org" in done.stdout and "CONSOLE" not in done.stderr
    asked = {urlsplit(event["params"]["url"]).hostname for event in json.loads(log.read_text())["events"] if "url" in event.get("params", {})}
    assert asked <= {None, "", "clients2.google.com", "update.googleapis.com", "accounts.google.com"}, asked # Chromium's own habits; none of them is answered here
