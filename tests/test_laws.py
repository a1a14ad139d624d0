"""The three laws of the resolver, on all five formats, over generated documents and edits.

1. What does not touch the cited words leaves the citation byte-identical and `verified`.
2. No edit, however small, is answered `verified` and `current`.
3. Whatever it is given, the resolver answers.
"""
import json, os, shutil
from pathlib import Path
import pytest
from hypothesis import given, settings, strategies as st
from mimirag.evidence.citation import Citation
from mimirag.evidence.text import Span, sha256, text_hash
from mimirag.extract.readers import extract
from mimirag.index.reader import Index
from mimirag.retrieve.knowledge import KnowledgeBase
from mimirag.retrieve.resolver import Resolver
from mimirag.sources.defaults import trying
from mimirag.sources.profile import load_profile
from pdf_writer import Pdf, show

FORMATS = ["md", "rst", "html", "txt", "pdf", "ipynb"]
WORDS = ["valve", "opens", "at", "6.2", "bar", "seat", "pump", "Prüfung", "検査", "load-bearing", "x_y", "1.0.21", "the", "of", "every"]
paragraphs = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=2, max_size=7)

def render(format: str, text: list[list[str]]) -> bytes:
    "Paragraphs as a document of a format"
    lines = [" ".join(words) for words in text]
    if format=="pdf":
        pdf = Pdf()
        for page in (lines[:4], lines[4:]):
            if page: pdf.page(b"".join(show(60, 780-16*n, line.encode("cp1252", "replace").decode("cp1252")) for n,line in enumerate(page)))
        return pdf.build()
    if format=="ipynb": return json.dumps(dict(cells=[dict(cell_type="markdown", source=line) for line in lines], nbformat=4)).encode()
    if format=="html": return ("<!DOCTYPE html><meta charset=utf-8><title>T</title>"+"".join(f"<p>{line}</p>\n" for line in lines)).encode()
    return ("\n\n".join(lines)+"\n").encode()

def cite_all(root: Path, path: str, source: str = "docs") -> list[Citation]:
    "Citations of every line, and of every two lines, of a file"
    data = (root/path).read_bytes()
    found = extract(path, data)
    made = []
    for page,lines in enumerate(found.lines, 1):
        for first in range(1, len(lines)+1):
            for last in {first, min(first+1, len(lines))}:
                span = Span(first, last, page if found.paged else None)
                made.append(Citation(kind="doc", version=sha256(data), source=source, path=path, extract=found.name, span=span, text=text_hash(found.text_at(span))))
    return made

@pytest.fixture(scope="module")
def world(tmp_path_factory):
    "A source on disk, and a resolver whose worker is shared by all examples"
    home = tmp_path_factory.mktemp("laws")
    (home/"docs").mkdir()
    (home/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
    resolver = Resolver(load_profile(home/"mimirag.toml"))
    yield home/"docs", resolver
    resolver.close()

def edits(kind: str, text: list[list[str]], at: int) -> list[list[str]]:
    "An edit of paragraphs"
    at %= len(text)
    if kind=="insert": return text[:at]+[["inserted", "words"]]+text[at:]
    if kind=="delete": return text[:at]+text[at+1:] or [["left"]]
    if kind=="swap": return text[:at]+text[at+1:at+2]+text[at:at+1]+text[at+2:]
    if kind=="move": return text[at:]+text[:at]
    if kind=="rewrap":
        joined = [word for words in text for word in words]
        return [joined[n:n+4] for n in range(0, len(joined), 4)]
    if kind=="word": return text[:at]+[[*text[at][:-1], text[at][-1]+"s"]]+text[at+1:]
    return text

KINDS = ["insert", "delete", "swap", "move", "rewrap", "word", "same size", "byte", "nothing"]

def changed_bytes(kind: str, format: str, text, at: int) -> bytes:
    before = render(format, text)
    if kind=="byte" or kind=="same size": # one letter becomes another, and nothing else is different
        places = [n for n in range(len(before)) if before[n:n+1].isalnum()]
        place = places[at % len(places)]
        return before[:place]+(b"Q" if before[place:place+1]!=b"Q" else b"Z")+before[place+1:]
    return render(format, edits(kind, text, at))

@pytest.mark.parametrize("format", FORMATS)
@given(text=paragraphs, kind=st.sampled_from(KINDS), at=st.integers(0, 99))
@settings(max_examples=120)
def test_no_edit_is_verified_and_current(world, format, text, kind, at):
    root,resolver = world
    path,other = root/f"doc.{format}", root/f"other.{format}"
    before = render(format, text)
    path.write_bytes(before)
    other.write_bytes(render(format, [["the", "bystander"], *text]))
    cited,bystanders = cite_all(root, path.name), cite_all(root, other.name)
    assert all(resolver.resolve(citation).holds for citation in cited)
    stat = path.stat()
    after = changed_bytes(kind, format, text, at)
    path.write_bytes(after)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns)) # the modification time tells nothing
    for citation in cited:
        verdict = resolver.resolve(citation)
        assert "resolver failed" not in verdict.reason, verdict
        if after==before: assert verdict.holds
        else: check_truth(citation, verdict, path, after, resolver)
    for citation in bystanders: # law 1: they are other files
        assert resolver.resolve(citation).holds
    assert cite_all(root, other.name)==bystanders

def check_truth(citation: Citation, verdict, path: Path, after: bytes, resolver: Resolver):
    "A verdict on a changed file must say what is really there"
    assert not verdict.holds and verdict.integrity=="version_unavailable", (citation, verdict)
    try: found = extract(path.name, after)
    except Exception: return # the edit made it unreadable
    here = found.text_at(citation.span)
    places = [span for span in all_spans(found, citation.span) if text_hash(found.text_at(span))==citation.text]
    if here is not None and text_hash(here)==citation.text: assert verdict.currency=="superseded_same"
    else: assert verdict.currency=={0: "superseded_changed", 1: "superseded_moved"}.get(len(places), "ambiguous"), (verdict, places)
    if verdict.relocated:
        again = resolver.resolve(verdict.relocated)
        assert again.holds and text_hash(again.text)==citation.text

def all_spans(found, like: Span):
    for page,lines in enumerate(found.lines, 1):
        for first in range(1, len(lines)-(like.last-like.first)+1): yield Span(first, first+like.last-like.first, page if found.paged else None)

@pytest.mark.parametrize("format", FORMATS)
@given(text=paragraphs)
@settings(max_examples=15)
def test_renaming_is_not_an_edit_of_the_words(world, format, text):
    root,resolver = world
    for old in root.glob("*"): old.unlink()
    path = root/f"doc.{format}"
    path.write_bytes(render(format, text))
    cited = cite_all(root, path.name)
    path.rename(root/f"renamed.{format}")
    for citation in cited:
        verdict = resolver.resolve(citation)
        assert (verdict.integrity, verdict.currency)==("verified", "superseded_moved") and resolver.resolve(verdict.relocated).holds
    (root/f"renamed.{format}").unlink()
    assert {resolver.resolve(citation).currency for citation in cited}=={"source_gone"}

@pytest.mark.parametrize("format", FORMATS)
@given(text=paragraphs, field=st.sampled_from(["version", "extract", "text", "lines"]), digit=st.integers(0, 63))
@settings(max_examples=40)
def test_a_forged_citation_is_never_verified(world, format, text, field, digit):
    root,resolver = world
    for old in root.glob("*"): old.unlink()
    (root/f"doc.{format}").write_bytes(render(format, text))
    for citation in cite_all(root, f"doc.{format}"):
        flip = lambda digest: digest[:digit]+("0" if digest[digit]!="0" else "1")+digest[digit+1:]
        if field=="version": forged = citation.model_copy(update=dict(version=flip(citation.version)))
        elif field=="text": forged = citation.model_copy(update=dict(text=flip(citation.text)))
        elif field=="extract": forged = citation.model_copy(update=dict(extract=f"{citation.extractor}:{flip(citation.extraction)}"))
        else: forged = citation.model_copy(update=dict(span=Span(citation.span.first+50, citation.span.last+50, citation.page)))
        verdict = resolver.resolve(str(forged))
        assert verdict.integrity==("version_unavailable" if field=="version" else "mismatch"), (forged, verdict)

def passages(index_path: Path) -> dict[tuple, str]:
    "Place → citation, for every passage of an index"
    index = Index(index_path)
    found = {}
    for passage in index.passages([id for id, in index.rows("SELECT id FROM chunk")]).values():
        from mimirag.evidence.text import split_lines, text_at
        text = text_at(split_lines(index.page(passage.extraction, passage.span.page)[0]), passage.span)
        found[passage.source, passage.path, passage.span] = str(passage.cite(text_hash(text)))
    index.close()
    return found

PROFILE = '[profile]\nindex = "i.sqlite"\n[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n'
MORE = '[[source]]\nid = "more"\nkind = "documents"\nroot = "more"\n'

def test_rebuilds_leave_citations_alone(tmp_path):
    "Other sizes, sources added and removed, another folder: the same string for the same words, and it holds"
    home = tmp_path/"one"
    shutil.copytree(Path(__file__).resolve().parents[1]/"fixtures/docs", home/"docs")
    shutil.copytree(home/"docs", home/"more")
    (home/"mimirag.toml").write_text(PROFILE+MORE)
    with KnowledgeBase(home) as kb: kb.build(workers=1)
    first = passages(home/"i.sqlite")
    assert len(first) > 15
    (home/"mimirag.toml").write_text(PROFILE) # a source is removed
    with trying(chunk=dict(target_chars=300, least_chars=50, page_chars=400)), KnowledgeBase(home) as kb: kb.build(workers=1)
    second = passages(home/"i.sqlite")
    assert set(second)-set(first), "the sizes have cut other passages"
    elsewhere = tmp_path/"another machine"/"deep"
    elsewhere.mkdir(parents=True)
    shutil.copytree(home/"docs", elsewhere/"docs") # new times, new inodes
    shutil.copytree(home/"docs", elsewhere/"more")
    (elsewhere/"mimirag.toml").write_text(MORE+PROFILE.replace('[profile]\nindex = "i.sqlite"\n', ""))
    with KnowledgeBase(elsewhere) as kb:
        kb.build(workers=1)
        third = passages(elsewhere/"mimirag.sqlite")
        for place in set(first) & set(third): assert first[place]==third[place]
        assert {place for place in third if place[0]=="docs"}=={place for place in first if place[0]=="docs"}
        for string in [*first.values(), *second.values()]: # also those of passages that no index has any more
            verdict = kb.resolve(string)
            assert verdict.holds and text_hash(verdict.text)==verdict.citation.text, verdict

def test_history_does_not_show(tmp_path):
    "An index changed step by step equals one built at once: generation, passages, and the order of results"
    home = tmp_path
    (home/"docs").mkdir()
    (home/"mimirag.toml").write_text(PROFILE)
    texts = {f"{n}.md": f"# Part {n}\n\nThe valve {'opens ' * (n % 4)}at {n} bar.\n" for n in range(12)}
    with KnowledgeBase(home) as kb:
        for n,(name,text) in enumerate(texts.items()):
            (home/"docs"/name).write_text("first version, other words\n" if n % 3==0 else text)
            if n % 4==0: kb.build(workers=1)
        for name,text in texts.items(): (home/"docs"/name).write_text(text)
        stepped = kb.build(workers=1).generation
        order = [(item.id, item.score) for item in kb.search("valve opens bar", limit=20)]
        (home/"i.sqlite").unlink()
        assert kb.build(workers=1).generation==stepped
        assert [(item.id, item.score) for item in kb.search("valve opens bar", limit=20)]==order

@given(st.one_of(st.text(max_size=200), st.binary(max_size=50), st.integers(), st.none(), st.from_regex(r"mimir:[0-9]:(doc|code|record):.{0,60}"), st.from_regex(r"mc1-[a-z2-7]{26}", fullmatch=True)))
@settings(max_examples=400)
def test_the_resolver_answers_everything(world, asked):
    verdict = world[1].resolve(asked)
    assert verdict.integrity in ("malformed", "unsupported", "withdrawn", "source_unavailable") and "resolver failed" not in verdict.reason

@given(place=st.integers(0, 400), char=st.characters(), cut=st.booleans())
@settings(max_examples=300)
def test_a_damaged_citation_is_never_verified(world, place, char, cut):
    root,resolver = world
    (root/"doc.md").write_bytes(b"# Valve\n\nIt opens at 6.2 bar.\n")
    string = str(cite_all(root, "doc.md")[-1])
    place %= len(string)
    damaged = string[:place]+("" if cut else char)+string[place+1:]
    verdict = resolver.resolve(damaged)
    if damaged!=string and verdict.holds: # the words are there, read by an extractor of another name: that much is true
        assert verdict.citation==Citation.parse(string).model_copy(update=dict(extract=verdict.citation.extract)) and verdict.citation.extractor!="markdown/1"

def test_reading_outside_the_root_is_impossible(world, tmp_path):
    root,resolver = world
    (root.parent/"secret.md").write_text("secret words\n")
    (root/"link.md").unlink(missing_ok=True)
    (root/"link.md").symlink_to("../secret.md")
    inside = dict(kind="doc", version=sha256(b"secret words\n"), source="docs", extract="markdown/1:"+sha256(b"secret words\n"), text=text_hash("secret words"))
    good = Citation(**inside, path="link.md", span=Span(1, 1))
    assert resolver.resolve(good).integrity=="source_unavailable" and resolver.resolve(good).text is None
    for path in ["../secret.md", "/etc/passwd", "a/../../secret.md", "..%2Fsecret.md", "%2E%2E/secret.md"]:
        verdict = resolver.resolve(str(good).replace("path=link.md", f"path={path}"))
        assert verdict.integrity in ("malformed", "version_unavailable") and verdict.text is None
