"Nearly the same passages take one place, what the question asks about is never hidden, and nothing that matched is lost"
import itertools, random
import pytest
import mimirag
from mimirag.mcp_server.calls import Desk, call
from mimirag.retrieve import copies

LICENCE = "Permission is granted to whoever holds a copy of these tables to use them, to change them and to hand them on, as long as this notice stays with them. There is no warranty of any kind.\nCopyright {year} the board of {name}."
HEIGHT = "The gate is moved by a motor in the house beside it.\nIts sill lies at {height} cm.\nThe key hangs behind the door of the house, and the keeper has another.\nNobody{may} opens the gate in a storm, whoever asks for it and however high the water stands."

@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("copies")
    for n in range(25): write(home/f"docs/tables/{n:02}.txt", LICENCE.format(year=2000+n, name=["Ternsey", "Gullsey"][n%2]))
    write(home/"docs/warranty.txt", "A warranty for the rake is granted by its maker for two years.")
    for name,height,may in [("north", 62, ""), ("south", 81, ""), ("west", 62, " but the keeper")]: write(home/f"docs/gates/{name}.txt", HEIGHT.format(height=height, may=may))
    write(home/"mimirag.toml", '[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
    with mimirag.open(home/"mimirag.toml") as kb: kb.build(workers=1)
    return home

def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text+"\n")

@pytest.fixture
def kb(home, monkeypatch):
    monkeypatch.setattr(copies, "_nearly", lambda: 0.8)
    with mimirag.open(home/"mimirag.toml") as kb: yield kb

def all_paths(reply): return {path for item in reply for path in [item.path, *(near.citation.path for near in item.similar)]}

def test_off_unless_asked_for(home):
    with mimirag.open(home/"mimirag.toml") as kb: assert len(kb.search("permission to hand on", limit=10))==10 and not any(item.similar for item in kb.search("permission to hand on"))

def test_one_place_and_room_for_others(kb):
    reply = kb.search("permission granted warranty", limit=3)
    assert sorted(bool(item.similar) for item in reply)==[False, True] and [item.path for item in reply if not item.similar]==["warranty.txt"]
    near = next(item.similar for item in reply if item.similar)
    assert len(near) >= 7 and all("Copyright" not in each.difference and "{+20" in each.difference for each in near)
    assert all(kb.resolve(each.citation.id).holds for each in near)
    assert [item.rank for item in reply]==list(range(1, len(reply)+1))

@pytest.mark.parametrize("query,path", [("permission granted 2007", "tables/07.txt"), ("copyright of the board", None), ("permission granted by Gullsey", None)])
def test_what_is_asked_about_is_not_hidden(kb, query, path):
    reply = kb.search(query)
    if path: assert reply[0].path==path
    else: assert not any(item.similar for item in reply[:2])

@pytest.mark.parametrize("query", ["how high is the sill", "may nobody open the gate in a storm", "62 cm or 81 cm", "gate north", "key of the gate in the south"])
def test_numbers_names_and_negations(kb, query):
    reply = kb.search(query, paths=None, limit=3)
    shown = {item.path: item for item in reply}
    hidden = {near.citation.path: item for item in reply for near in item.similar}
    if "sill" in query or "62" in query: assert {"gates/north.txt", "gates/south.txt"} <= set(shown)
    if "nobody" in query: assert {"gates/north.txt", "gates/west.txt"} <= set(shown)
    if "north" in query: assert shown["gates/north.txt"].rank==1
    if "south" in query: assert shown["gates/south.txt"].rank==1
    assert {"gates/north.txt", "gates/south.txt", "gates/west.txt"} <= set(shown) | set(hidden)

def test_who_filters_sees_what_was_filtered_for(kb):
    assert not any(item.similar for item in kb.search("permission granted", paths="tables"))
    assert not any(item.similar for item in kb.search("permission granted", sources="docs"))

def test_nothing_is_lost(kb, home, monkeypatch):
    for query in ["permission granted warranty", "keeper gate house", "storm", "tables notice copy board"]:
        with_them = kb.search(query, limit=100)
        monkeypatch.setattr(copies, "_nearly", lambda: 0.0)
        without = kb.search(query, limit=100)
        monkeypatch.setattr(copies, "_nearly", lambda: 0.8)
        assert all_paths(with_them)==all_paths(without) and with_them.outcome==without.outcome

def test_told_to_agents_and_read_back(kb, home):
    item = kb.search("permission to hand on")[0]
    assert type(item).model_validate_json(item.model_dump_json())==item
    desk = Desk(home/"mimirag.toml")
    answer = call(desk, "search", dict(query="permission to hand on"))
    near = answer.fields["items"][0]["similar"][0]
    assert near.split()[0]==item.similar[0].citation.id and item.similar[0].difference in near
    assert f"nearly the same: docs/{item.similar[0].citation.path}" in answer.text
    assert not call(desk, "read", dict(citation=near.split()[0])).failed
    desk.close()

def test_a_difference_is_symmetric_in_what_it_finds():
    chance = random.Random(1)
    words = "valve pump gate sill key 62 81 not never 2023 2024 keeper board".split()
    texts = [" ".join(chance.choices(words, k=8))+". "+" ".join(chance.choices(words, k=6)) for _ in range(40)]
    for one,two in itertools.combinations(texts, 2):
        left,right = (copies.Evidence.model_construct(text=text, marks=((0, len(text.split()[0])),)) for text in (one, two))
        assert copies.asked_about(left, right)==copies.asked_about(right, left)
        assert copies.difference(left, right)=="" or set(one.split())!=set(two.split())
