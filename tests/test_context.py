"A passage says where it goes on, in a reply, on the command line and to an agent"
import subprocess, sys
import pytest
import mimirag
from mimirag.mcp_server.calls import Desk, call

PAGES = [["The relief valve of pump P-1 is tested by the keeper every", "month, before the pump is started, and the foreman is told as", "soon as the relief valve does not open, so that the gate of"],
         ["Ternsey can be closed in time and the pump be stopped by hand.", "Gullsey", "At Gullsey the seal of the drive is a matter for two persons."],
         ["The stove of the hut burns peat."]]

@pytest.fixture(scope="module")
def home(tmp_path_factory):
    import pymupdf
    home = tmp_path_factory.mktemp("goes-on")
    (home/"docs").mkdir()
    made = pymupdf.open()
    for number,lines in enumerate(PAGES, 1):
        page = made.new_page()
        for at,line in enumerate(["The polder of Ternsey", *lines]): page.insert_text((72, 72+20*at), line, fontsize=11)
        page.insert_text((280, 800), str(number), fontsize=9)
    made.save(home/"docs/manual.pdf")
    (home/"docs/pumps.md").write_text("# Pumps\n\n"+"\n".join(f"- Pump P-{n} is oiled in week {n}, and the oil of its gearbox is looked at when the pump stands still." for n in range(1, 31))+"\n")
    (home/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
    with mimirag.open(home/"mimirag.toml") as kb: kb.build(workers=1)
    return home

@pytest.fixture
def kb(home):
    with mimirag.open(home/"mimirag.toml") as kb: yield kb

def test_a_page_goes_on_in_the_midst_of_a_sentence(kb):
    found = kb.search("relief valve tested", paths="manual.pdf")[0]
    assert (found.page, found.continues.page, found.continued) == (1, 2, "on page 2")
    after = kb.read(found.continues.id)
    assert after.verdict.holds and "Ternsey can be closed in time" in after.text
    assert f"(continues on page 2: {found.continues.id})" in str(found)

def test_a_page_that_ends_with_its_sentence_does_not(kb):
    found = {item.page: item for item in kb.search("seal of the drive, stove of the hut", paths="manual.pdf")}
    assert found[2].continues is None and found[3].continues is None and found[2].continued == ""

def test_what_is_given_as_one_goes_on_after_its_second_part(kb):
    for query in ["gearbox of P-1", "gearbox of P-14", "gearbox oil pump", "week 30"]:
        for item in kb.search(query, paths="pumps.md"):
            last = "week 30" in item.text
            assert (item.continues is None) == last
            if item.continues: assert item.continues.lines[0] > item.lines[1] and kb.resolve(item.continues.id).holds

def test_evidence_is_read_back_from_json(kb):
    found = kb.search("relief valve tested")[0]
    assert type(found).model_validate_json(found.model_dump_json()) == found

def test_it_is_shown_on_the_command_line_and_told_to_agents(home, kb):
    after = kb.search("relief valve tested")[0].continues.id
    said = subprocess.run([sys.executable, "-m", "mimirag", "search", "relief valve tested", "--profile", str(home/"mimirag.toml")], capture_output=True, text=True).stdout
    assert f"continues on page 2: {after}" in said
    desk = Desk(home/"mimirag.toml")
    answer = call(desk, "search", dict(query="relief valve tested"))
    assert answer.fields["items"][0]["continues"] == after
    assert f"(continues on page 2: {after})" in answer.text and not call(desk, "read", dict(citation=after)).failed
    desk.close()
