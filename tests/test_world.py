"The example benchmark is what it says, and the ordinary path finds its evidence: a regression test, and no measure of quality"
import json, re, shutil, subprocess
from collections import Counter, defaultdict
from pathlib import Path
import pytest
pytest.importorskip("pymupdf")
import make_repository, make_world_pdfs
from mimirag.evidence.packet import Evidence
from mimirag.extract.readers import extract
from mimirag.index.words import STOPWORDS, WORD, analyse
from mimirag.lab.cases import Case, Gold, holds, read_case_set
from mimirag.retrieve.knowledge import KnowledgeBase
from mimirag.sources.jsonl import JsonLines
from mimirag.sources.profile import load_profile

WORLD = Path(__file__).resolve().parents[1]/"fixtures/world"
HEAD,FIRST = "3ad4e49b97dbdffcc3354dc9c6f4d2edd72e2ba0", "7d30415"
LEAST = Counter(single_source=8, cross_source=8, multi_hop=8, near_duplicate=8, contradictory=8, outdated=8, identifier=8, paraphrase=8, unanswerable=30, injection=8)

@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    "A copy of the benchmark with its repository built: no test depends on what somebody has built beside the original"
    home = shutil.copytree(WORLD, tmp_path_factory.mktemp("world")/"world", ignore=shutil.ignore_patterns("build"))
    make_repository.make(home/"build/repository")
    return home

@pytest.fixture(scope="module")
def kb(home):
    with KnowledgeBase(home) as kb:
        kb.report = kb.build(workers=1)
        yield kb

@pytest.fixture(scope="module")
def cases(home) -> list[Case]: return read_case_set(WORLD/"cases.jsonl", home/"mimirag.toml").cases

def one_space(text: str) -> str: return " ".join(text.split())

@pytest.fixture(scope="module")
def pages(home):
    "A function: source and path to pages and their lines, as they are cited, read from the originals"
    profile,read = load_profile(home/"mimirag.toml"), {}
    def pages_of(source: str, path: str) -> dict[int|None, list[str]]:
        if (source, path) in read: return read[source, path]
        declared,root = profile.sources[source], profile.root(source)
        if declared.kind=="records": found = {None: JsonLines(root.parent, root.name).fetch(path).text}
        elif declared.kind=="code": found = {None: subprocess.run(["git", "-C", root, "show", f"{declared.ref}:{path}"], check=True, capture_output=True, env=make_repository.OURS).stdout.decode()}
        else:
            extraction = extract(path, (root/path).read_bytes())
            found = {number if extraction.paged else None: page.text for number,page in enumerate(extraction.pages, 1)}
        read[source, path] = {number: text.split("\n") for number,text in found.items()}
        return read[source, path]
    return pages_of

def spans(cases: list[Case]) -> list[tuple[str, Gold]]: return [(case.id, span) for case in cases for span in (*case.gold, *case.near)]

# --- What the cases say

def test_types_and_counts(cases):
    found = Counter(case.type for case in cases)
    assert set(found)==set(LEAST) and all(found[type] >= least for type,least in LEAST.items()) and len(cases) >= 150
    assert len({case.id for case in cases})==len({case.question for case in cases})==len(cases)

def test_cases_spread_over_sources_and_formats(cases, home):
    gold = [span for case in cases for span in case.gold]
    assert {span.source for span in gold}==set(load_profile(home/"mimirag.toml").sources)
    endings = Counter(Path(span.path).suffix for span in gold)
    assert all(endings[ending] >= 8 for ending in (".md", ".rst", ".html", ".pdf", ".py")) and endings[".txt"] and endings[".c"] and sum(span.path[:2] in ("DR", "EX", "F-") for span in gold) >= 20

@pytest.mark.parametrize("type", LEAST)
def test_form_of_a_type(cases, type):
    for case in (case for case in cases if case.type==type):
        assert (case.answer is None)==(not case.gold)==(type=="unanswerable"), case.id
        assert bool(case.facts)==(type!="unanswerable") and bool(case.bait)==(type=="injection"), case.id
        if type=="cross_source": assert len({span.source for span in case.gold}) > 1, case.id
        if type in ("multi_hop", "contradictory"): assert len({(span.source, span.path, span.quote) for span in case.gold}) > 1, case.id
        if type in ("near_duplicate", "outdated"): assert case.near, case.id

def test_answers_hold_their_facts(cases):
    for case in cases:
        for fact in case.facts: assert any(one in (case.answer or "") for one in ([fact] if isinstance(fact, str) else fact)), (case.id, fact)

def test_words_stand_where_the_cases_say(cases, pages):
    for id,span in spans(cases):
        found = pages(span.source, span.path)
        lines = found[span.page] if span.lines is None else found[None][span.lines[0]-1:span.lines[1]]
        assert one_space(span.quote) in one_space("\n".join(lines)), (id, span)
        assert (span.lines is None)==(span.page is not None or span.path[:2] in ("DR", "EX", "F-")), (id, span)

def test_lines_are_no_wider_than_the_words(cases, pages):
    for id,span in spans(cases):
        if span.lines is None: continue
        lines = pages(span.source, span.path)[None][span.lines[0]-1:span.lines[1]]
        assert all(one_space(span.quote) not in one_space("\n".join(part)) for part in (lines[1:], lines[:-1])), (id, span)

def content(text: str) -> set[str]:
    "Stems of the words of a text, as the index has them, without those that every text has"
    return {token for word in WORD.findall(text) if word.lower() not in STOPWORDS for token in (*analyse(word).parts, *analyse(word).names)}

def test_paraphrases_share_no_word_with_their_evidence(cases):
    for case in cases:
        if case.type=="paraphrase": assert not (shared := content(case.question) & set.union(*(content(span.quote) for span in case.gold))), (case.id, shared)

def everything(kb) -> list[str]:
    "Every passage of the index, and every record"
    index,profile = kb._current_view().index, kb.profile
    passages = [text for document,*_ in index.documents() for text,_ in index.texts(index.passages_of(document)).values()]
    return passages + [entry.load().text for source in profile.of_kind("records") for entry in JsonLines(profile.root(source).parent, profile.root(source).name).entries()]

def test_what_has_no_answer_has_none(kb, cases):
    "The words that an answer would need stand nowhere together"
    texts = [text.casefold() for text in everything(kb)]
    for case in cases:
        if case.type!="unanswerable": continue
        assert case.note.startswith("nowhere together: "), case.id
        needed = case.note.removeprefix("nowhere together: ").casefold().split(" + ")
        assert not (found := [text for text in texts if all(word in text for word in needed)]), (case.id, found)

def test_bait_stands_beside_the_evidence(home, cases):
    "In the file, whether or not a reader is shown it, and not in the right answer"
    profile = load_profile(home/"mimirag.toml")
    for case in cases:
        if not case.bait: continue
        assert case.bait not in case.answer, case.id
        span = case.gold[0]
        root = profile.root(span.source)
        data = root.read_bytes() if root.is_file() else (root/span.path).read_bytes()
        assert case.bait.encode() in data and (b"instructions" in data or b"disregard" in data), case.id

# --- What it is made of

def test_the_repository_is_the_same_everywhere(home, tmp_path, monkeypatch):
    "Whatever the user's configuration and the clock say"
    (tmp_path/"git").mkdir()
    (tmp_path/"git/attributes").write_text("* text eol=crlf\n")
    (tmp_path/"git/ignore").write_text("*.py\n")
    (tmp_path/"config").write_text("[user]\nname = Somebody\nemail = s@example.org\n[commit]\ngpgSign = true\n[core]\nautocrlf = true\nhooksPath = /nowhere\n[init]\ndefaultBranch = trunk\n")
    theirs = dict(GIT_CONFIG_GLOBAL=str(tmp_path/"config"), XDG_CONFIG_HOME=str(tmp_path), GIT_DIR=str(tmp_path/"elsewhere"), GIT_AUTHOR_NAME="Somebody", TZ="Asia/Tokyo")
    for name,value in theirs.items(): monkeypatch.setenv(name, value)
    assert make_repository.make(tmp_path/"made")==HEAD==make_repository.git(home/"build/repository", "rev-parse", "main")
    assert make_repository.git(tmp_path/"made", "rev-parse", "v1.0").startswith(FIRST)
    assert int(make_repository.git(tmp_path/"made", "rev-list", "--count", "main")) >= 6
    assert "tidectl/gauge.py" in make_repository.git(tmp_path/"made", "log", "--name-status", "--diff-filter=R", "--find-renames", "--format=")
    assert make_repository.make(tmp_path/"made")==HEAD # over what an earlier run left

def test_nobodys_own_folder_is_replaced(tmp_path):
    (tmp_path/"mine").write_text("kept")
    with pytest.raises(SystemExit, match="did not make it"): make_repository.make(tmp_path)
    make_repository.git(tmp_path, "init", "-q")
    with pytest.raises(SystemExit, match="did not make it"): make_repository.make(tmp_path)
    assert (tmp_path/"mine").read_text()=="kept"

def test_pdfs_are_what_the_script_writes():
    for name,make in make_world_pdfs.FILES.items(): assert (WORLD/"docs"/name).read_bytes()==make(), name
    assert {path.relative_to(WORLD/"docs").as_posix() for path in (WORLD/"docs").rglob("*.pdf")}==set(make_world_pdfs.FILES)

def test_records_that_replace_each_other_say_so():
    rows = {row["id"]: row for row in map(json.loads, (WORLD/"records/decisions.jsonl").read_text("utf-8").splitlines())}
    replaced = [row for row in rows.values() if "supersedes" in row]
    assert len(replaced) >= 5
    for row in replaced:
        assert rows[row["supersedes"]]["status"]==f"superseded by {row['id']}" and rows[row["supersedes"]]["date"] < row["date"] and row["supersedes"] in row["reason"]

def test_comments_name_decisions_and_experiments_that_there_are():
    known = {json.loads(line)["id"] for path in (WORLD/"records").glob("*.jsonl") for line in path.read_text("utf-8").splitlines()}
    files = [path for path in (*(WORLD/"repository").rglob("*"), *(WORLD/"docs").rglob("*.[mr]*"), *(WORLD/"records").glob("*")) if path.is_file() and path.suffix!=".pyc"]
    named = {name for path in files for name in re.findall(r"\b(?:DR-\d{3}|EXP-\d{4}|F-\d{3})\b", path.read_text("utf-8"))}
    assert named and named <= known, named-known

# --- What becomes of it

def test_everything_is_read(kb):
    assert not kb.report.unreadable and kb.report.documents >= 60
    assert {note.path: note.note for note in kb.report.notes}=={"reports/annual-2023.pdf": "page 6: no text, 1 image", "sheets/battery-vb38.pdf": "page 1: text that a reader cannot see was left out"}
    assert kb.status().fresh

def test_the_two_commits_are_told_apart(kb):
    found = list(kb.search("MAX_HEAD = metres", paths="tidectl/modes.py"))
    for source,value in (("controller", 4.5), ("controller-1.0", 4.8)):
        assert [e.source for e in found if f"MAX_HEAD = {value}" in e.text]==[source]
    assert found and all(kb.resolve(e).holds for e in found)

def test_hidden_words_are_not_evidence(kb):
    texts = "\n".join(everything(kb))
    for hidden in ("satellite", "port 8080", "recommend charging at 40 V"): assert hidden not in texts

def test_every_place_can_be_found(kb, cases):
    "Some passage of the index overlaps it"
    index,passages = kb._current_view().index, defaultdict(list)
    for document,source,path,_ in index.documents(): passages[source, path] = [(p.span.page, (p.span.first, p.span.last)) for p in index.passages_of(document)]
    for id,span in spans(cases):
        if kb.profile.sources[span.source].kind=="records": continue
        found = passages[span.source, span.path]
        assert any(page==span.page and (span.lines is None or first <= span.lines[1] and span.lines[0] <= last) for page,(first,last) in found), (id, span)

# Shares of places found among ten items, and of questions whose first item is one of them, as measured less a margin
FLOORS = dict(single_source=(0.9, 0.45), cross_source=(0.55, 0.45), multi_hop=(0.48, 0.25), near_duplicate=(0.8, 0.5), contradictory=(0.72, 0.5), outdated=(0.5, 0.0), identifier=(0.9, 0.45), paraphrase=(0.1, 0.0), injection=(0.75, 0.55))

def found_of(case: Case, items: list[Evidence]) -> tuple[float, float]:
    "Share of a case's places that the items hold, and whether the first item is one of them"
    return sum(any(holds(item, span) for item in items) for span in case.gold)/len(case.gold), float(bool(items) and any(holds(items[0], span) for span in case.gold))

def test_search_finds_what_it_found(kb, cases):
    found = defaultdict(list)
    for case in cases:
        if case.gold: found[case.type].append(found_of(case, list(kb.search(case.question, limit=10))))
    measured = {type: tuple(round(sum(column)/len(rows), 3) for column in zip(*rows)) for type,rows in found.items()}
    assert set(measured)==set(FLOORS) and all(value >= floor for type,floors in FLOORS.items() for value,floor in zip(measured[type], floors)), measured
