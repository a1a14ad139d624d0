"A second look by a model in a folder: one with few and random weights, for no real one is needed to see that it is asked, bounded and believed"
import json, time
from importlib.util import find_spec
import pytest
import mimirag
from mimirag.evidence.errors import MissingExtra, ProfileError, SourceError
from mimirag.retrieve import rerank
from mimirag.sources.profile import Reranker, load_profile

WORDS = "valve relief pump pressure opens closes at bar the of a seat spring board keeper".split()
PROFILE = '[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n'

@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("second look")
    (home/"docs").mkdir()
    for n in range(30): (home/f"docs/{n:02}.md").write_text(f"# Note {n}\n\n"+" ".join(WORDS[(n*k+k) % len(WORDS)] for k in range(1, 12))+" relief valve.\n")
    (home/"mimirag.toml").write_text(PROFILE)
    with mimirag.open(home/"mimirag.toml") as kb: kb.build(workers=1)
    return home

@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("model"))

def tiny(folder, numbers=1):
    "A cross-encoder of two small layers with random weights"
    torch,transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder/"vocab.txt").write_text("\n".join(words)+"\n")
    transformers.BertTokenizer(str(folder/"vocab.txt"), model_max_length=64).save_pretrained(folder)
    transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=64, num_labels=numbers)).save_pretrained(folder)
    return folder

def profile(home, name, table):
    (home/name).write_text(f'[profile]\nindex = "mimirag.sqlite"\n[reranker]\n{table}\n{PROFILE}')
    return home/name

def ids(reply): return [item.id for item in reply]

def test_a_model_puts_in_order(home, model):
    with mimirag.open(home/"mimirag.toml") as plain, mimirag.open(profile(home, "m.toml", f"model = {json.dumps(str(model))}\nitems = 12")) as kb:
        before,after = plain.search("relief valve pressure", limit=12), kb.search("relief valve pressure", limit=12)
        assert set(ids(before))==set(ids(after)) and ids(before)!=ids(after)
        scores = [item.channels["rerank"].score for item in after]
        assert scores==sorted(scores, reverse=True)==[item.score for item in after] and len(set(scores)) > 6
        assert [item.rank for item in after]==[item.channels["rerank"].rank for item in after]==list(range(1, 13))
        assert all(item.channels["lexical"] for item in after)
        assert [item.score for item in kb.search("relief valve pressure", limit=12)]==scores
        assert kb.search("relief valve pressure", limit=3).items==after.items[:3] # of twelve that are looked at, three are given
        more = kb.search("relief valve pressure", limit=20)
        assert ["rerank" in item.channels for item in more]==[True]*12+[False]*8 and [item.score for item in more]==sorted([item.score for item in more], reverse=True)
        assert all(kb.resolve(item).holds for item in after.items[:3])

def test_its_scores_are_those_of_the_model(home, model):
    from sentence_transformers import CrossEncoder
    with mimirag.open(profile(home, "m.toml", f"model = {json.dumps(str(model))}\nitems = 12")) as kb: found = kb.search("relief valve", limit=5)
    other = CrossEncoder(str(model), device="cpu", local_files_only=True)
    expected = other.predict([("relief valve", f"{item.title}\n{item.text}") for item in found], batch_size=1)
    assert [item.score for item in found]==pytest.approx(list(map(float, expected)), abs=1e-5)

def test_time_is_bounded_and_that_is_said(home, monkeypatch):
    class Slow(rerank.CrossEncoder):
        def __init__(self): self._declared,self.items = Reranker(model="./x", items=20, seconds=0.05), 20
        _predict = staticmethod(lambda few: time.sleep(0.06) or [float(len(text)) for _,text in few])
    monkeypatch.setattr("mimirag.retrieve.knowledge.open_reranker", lambda profile: Slow())
    with mimirag.open(home/"mimirag.toml") as kb: found = kb.search("relief valve", limit=20)
    assert ["rerank" in item.channels for item in found]==[True]*4+[False]*16
    assert "there was time for a second look at 4 of 20 passages; the others follow in the order of the search" in found.scope.notes

def test_what_is_not_there_is_told(home, tmp_path, monkeypatch):
    here = [(f"model = {json.dumps(str(broken(tmp_path)))}", "the model cannot be loaded")] if find_spec("sentence_transformers") else []
    for table,said in [('model = "models/none"', "there is no model in this folder"), *here]:
        with mimirag.open(profile(home, "n.toml", table)) as kb:
            with pytest.raises(SourceError, match=said): kb.search("relief valve")
    for table,said in [('model = "minilm"', "neither \"words\" nor a folder"), ("items = 5", 'field "model" is missing'), ('model = "words"\nitems = 1', "greater than or equal to 2"), ('model = "words"\nitem = 3', "did you mean \"items\"")]:
        with pytest.raises(ProfileError, match=said): load_profile(profile(home, "n.toml", table))

def broken(folder):
    (folder/"config.json").write_text("{")
    return folder

def test_a_library_that_is_not_there(home, model, monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with mimirag.open(profile(home, "m.toml", f"model = {json.dumps(str(model))}")) as kb:
        with pytest.raises(MissingExtra, match="needs sentence-transformers"): kb.search("relief valve")

def test_a_classifier_is_no_reranker(home, tmp_path):
    with mimirag.open(profile(home, "c.toml", f"model = {json.dumps(str(tiny(tmp_path, 3)))}")) as kb:
        with pytest.raises(SourceError, match="gives 3 numbers"): kb.search("relief valve")

@pytest.mark.parametrize("query", ["", "!!!", "walrus", '"relief valve"', "relief "*3_000, "\ud800 relief", "relief valve\0", "阀门 relief"])
def test_any_question(home, model, query):
    for table in ['model = "words"', f"model = {json.dumps(str(model))}\nitems = 4"]:
        with mimirag.open(home/"mimirag.toml") as plain, mimirag.open(profile(home, "q.toml", table)) as kb:
            before,after = plain.search(query, limit=40), kb.search(query, limit=40)
            assert set(ids(before))==set(ids(after)) and before.outcome==after.outcome
            if query.startswith('"'): assert ids(before)==ids(after)

def test_words_look_at_where_they_stand(tmp_path):
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a.md").write_text("# Minutes\n\nThe valve is for the board. What the keeper has said was a relief for all of us, and a new valve is here.\n")
    (tmp_path/"docs/b.md").write_text("# Notes\n\nThe relief valve of the pump was tested on a day without wind and has held, as it was to be expected of it.\n")
    profile(tmp_path, "plain.toml", 'model = "words"')
    (tmp_path/"mimirag.toml").write_text(PROFILE)
    with mimirag.open(tmp_path/"mimirag.toml") as kb:
        kb.build(workers=1)
        assert kb.search("relief valve")[0].path=="a.md"
    with mimirag.open(tmp_path/"plain.toml") as kb:
        found = kb.search("relief valve")
        assert found[0].path=="b.md" and found[0].channels["rerank"].rank==1 and found[0].channels["lexical"].rank==2

def test_it_may_be_the_default(home, monkeypatch):
    with mimirag.open(home/"mimirag.toml") as kb:
        assert not any("rerank" in item.channels for item in kb.search("relief valve"))
        monkeypatch.setattr(rerank, "defaults", lambda: dict(rerank=dict(pairs=0.3, title=0.6, items=5)))
        assert ["rerank" in item.channels for item in kb.search("relief valve", limit=8)]==[True]*5+[False]*3
        monkeypatch.undo()
        assert not any("rerank" in item.channels for item in kb.search("relief valve"))
