"""The page about a comparison: what it says, that it cannot be written to by what it shows, and that a real browser shows it well.

The browser is Chromium, without a window and without network; where it is not installed, those tests are skipped.
"""
import json, random, re, shutil, subprocess
from html import escape
import pytest
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("scipy")
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
    parts = [page.index(words) for words in ("Inconclusive", "What was asked", "What came out", "<h3>Guards", "<h2>Every query", "By set and by type", "What got worse", "The queries that moved most", "What it costs", "How it can be checked")]
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
        assert 3 <= len(printed) <= 25 and "What got worse" in text and record.digest in text.replace("\n", "")
