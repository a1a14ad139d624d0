"What somebody with an interest might try, and what happens by itself to profiles, files and indexes: nothing may be quoted that does not stand there"
import json, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
import pytest
from mimirag.evidence.citation import Citation
from mimirag.evidence.errors import MimiRAGError
from mimirag.evidence.text import Span, text_hash
from mimirag.retrieve.knowledge import KnowledgeBase
from mimirag.sources.defaults import trying

def profile(kb, **changes):
    "Change lines of a profile's source"
    path = kb.profile.file
    path.write_text(path.read_text()+"".join(f"{name} = {json.dumps(value)}\n" for name,value in changes.items()))

@pytest.fixture
def changed(kb_of):
    "A knowledge base whose only file has changed since its passage was cited"
    kb = kb_of({"a.md": "# Valve\n\nIt opens at 6.2 bar.\n\nThe secret is 4711.\n"})
    item = kb.search("6.2 bar")[0]
    (kb.profile.root("docs")/"a.md").write_text("# Valve\n\nIt opens at 6.3 bar.\n")
    return kb, item

def test_the_stored_copy_is_shown_for_what_was_cited_only(changed):
    kb,item = changed
    assert kb.read(item).origin=="stored copy"
    for span,words in [(Span(3, 3), "It opens at 9.9 bar."), (Span(900, 900), "It opens at 6.2 bar.")]: # words, or lines, that the stored copy does not have
        forged = item.citation.model_copy(update=dict(span=span, text=text_hash(words)))
        assert kb.read(forged).origin=="nothing" and "6.2" not in str(kb.read(forged))

def test_withdrawn_means_withdrawn(changed):
    kb,item = changed
    profile(kb, exclude=["a.md"])
    with KnowledgeBase(kb.profile.file) as today:
        assert today.resolve(item).integrity=="withdrawn" and not today.search("6.2 bar").items
        assert today.read(item).origin=="nothing" and "4711" not in str(today.read(item))
        assert today.resolve(item.id).integrity=="withdrawn"

def test_a_widened_profile_claims_no_absence(kb_of):
    kb = kb_of({"a.md": "a plover\n", "b.log": "a walrus\n"}, more='include = ["**/*.md"]')
    assert kb.search("walrus").outcome=="none"
    kb.profile.file.write_text(kb.profile.file.read_text().replace("**/*.md", "**/*"))
    with KnowledgeBase(kb.profile.file) as wider:
        reply = wider.search("walrus")
        assert reply.outcome=="degraded" and "admits other files today" in reply.scope.notes[0]
        wider.build(workers=1)
        assert wider.search("walrus").outcome=="found"

def test_another_root_is_another_source(kb_of):
    kb = kb_of({"a.md": "a plover\n"})
    (kb.profile.file.parent/"other").mkdir()
    kb.profile.file.write_text(kb.profile.file.read_text().replace('root = "docs"', 'root = "other"'))
    with KnowledgeBase(kb.profile.file) as other:
        reply = other.search("plover")
        assert not reply.items and reply.outcome=="degraded" and "another root" in reply.scope.notes[0]

def test_a_broken_profile_is_refused_each_time(kb_of):
    kb = kb_of({"a.md": "a plover\n"})
    item,path = kb.search("plover")[0], kb.profile.file
    before = path.read_text()
    path.write_text(before+"colour = 3\n")
    for _ in range(2):
        with pytest.raises(MimiRAGError, match="colour"): kb.search("plover")
        verdict = kb.resolve(item)
        assert verdict.integrity=="source_unavailable" and "colour" in verdict.reason
    path.write_text(before)
    assert kb.search("plover").items and kb.resolve(item).holds

def test_one_resolver_for_many_threads(kb_of):
    kb = kb_of({f"{n}.html": f"<h1>Part {n}</h1><p>The valve of part {n} opens at {n} bar." for n in range(12)})
    items = [kb.search(f"part {n}", paths=f"{n}.html")[0] for n in range(12)]*4
    with ThreadPoolExecutor(8) as many: assert [verdict.text for verdict in many.map(kb.resolve, items)]==[item.text for item in items]

def test_identifiers_outlive_the_passages(kb_of):
    kb = kb_of({"a.md": "".join(f"# Part {n}\n\nThe plover of part {n} is here.\n\n" for n in range(6))})
    item = kb.search("part 3")[0]
    with trying(chunk=dict(target_chars=5000, least_chars=4000)), KnowledgeBase(kb.profile.file) as recut:
        assert recut.build(workers=1).passages==1
        assert recut.resolve(item.id).holds and recut.resolve(item.id).text==item.text

@pytest.mark.parametrize("limit", [1, 2, 3])
def test_equal_scores_do_not_depend_on_history(kb_of, limit):
    "Files found in another order: the same hits, also where the limit cuts through equal scores"
    kb = kb_of({"z.md": "a plover\n"})
    for name in ["m.md", "a.md", "q.md"]:
        (kb.profile.root("docs")/name).write_text("a plover\n")
        kb.build(workers=1)
    assert [item.path for item in kb.search("plover", limit=limit)]==["a.md", "m.md", "q.md"][:limit]

def test_json_is_plain_text_for_a_terminal(kb_of):
    kb = kb_of({"a.md": "# A\n\nplover \x1b[2J\x9b31m \u202edetrevni\u202c \U000e0041 ümlaut 検査\n"})
    done = subprocess.run([sys.executable, "-m", "mimirag", "search", "plover", "--json", "-p", str(kb.profile.file)], capture_output=True, encoding="utf-8")
    assert not any(char in done.stdout for char in "\x1b\x9b\u202e\U000e0041") and "ümlaut 検査" in done.stdout
    assert json.loads(done.stdout)["items"][0]["text"]==kb.search("plover")[0].text

def test_stars_in_exclude_match_hidden_files(kb_of):
    kb = kb_of({".secret/a.md": "a plover\n", "b.md": "a plover\n"}, more='include = ["**", ".*/**"]\nexclude = ["*secret"]')
    assert [item.path for item in kb.search("plover")]==["b.md"]

def test_reports_do_not_answer_with_their_citations(kb_of):
    "A citation quoted in a document is no word of it"
    kb = kb_of({"a.md": "# Valve\n\nIt opens at 6.2 bar.\n"})
    cited = str(kb.search("valve")[0].citation)
    (kb.profile.root("docs")/"report.md").write_text(f"# Report\n\nAll well [{Citation.parse(cited).id}].\n\n<{cited}>\n")
    kb.build(workers=1)
    assert not [item for item in kb.search("markdown doc mimir").items if item.path=="report.md"] and kb.search("well").items

def test_copies_leave_room_for_others(kb_of):
    "Equal words under equal headings are one item when there is more to show, and the others are named; each citation holds"
    copies = {f"v{n}/guide.md": "# Guide\n\nThe plover rule is kept.\n" for n in range(30)}
    kb = kb_of({**copies, "other.md": "A plover, among many other birds of the shore that are not kept.\n", "headed.md": "# Other\n\nThe plover rule is kept.\n"})
    reply = kb.search("plover", limit=3)
    assert {item.path for item in reply}=={"v0/guide.md", "other.md", "headed.md"}
    first = next(item for item in reply if item.path=="v0/guide.md")
    assert len(first.alternates)==29 and all(kb.resolve(other).holds for other in first.alternates)
    assert len(kb.search("plover", limit=32))==32 and not any(item.alternates for item in kb.search("plover", limit=32))

def test_one_odd_file_does_not_end_a_build(kb_of):
    "A half of a surrogate pair in the id of a cell, in a title, in a heading"
    kb = kb_of({"good.md": "goodword\n", "bad.ipynb": r'{"cells": [{"cell_type": "markdown", "id": "\ud800", "source": "# \ud800 head\n\nplover"}]}', "bad.md": '---\ntitle: "\\uD800 knot"\n---\nwalrus\n'})
    assert kb.search("goodword").items and kb.search("plover").items and kb.search("walrus").items
