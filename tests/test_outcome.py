"Judging replies: signals of any text, calibrations of any shape, and replies from several sources"
import json, random
import pytest
from hypothesis import given, settings, strategies as st
from mimirag.evidence.citation import Citation
from mimirag.evidence.errors import UsageError
from mimirag.evidence.packet import Channel, Evidence
from mimirag.evidence.text import Span, text_hash
from mimirag.index.lexical import rarity_of
from mimirag.index.words import Marker, query_terms
from mimirag.lab.calibrate import Known, calibrate, cut_of, fitted
from mimirag.retrieve.knowledge import KnowledgeBase
from mimirag.retrieve.outcome import Calibration, Curve, Judge, Separation, beside, judged, passage_signals, shipped_calibration, worth_of

WORDS = ["RV-3", "pull-ups", "max_speed", "日本語の文書", "node.js", "1.0.21", "the", "What", "relief", "valve", "LiHua", "C++", "東", "über", "--dry-run", "62,300", "😀", "x"*200]

def evidence(text: str, terms, rank: int = 1, score: float = 1.0, title: str = "", channels=None) -> Evidence:
    marks = Marker(terms)(text)
    citation = Citation(kind="doc", version="ab"*32, source="s", path=f"{rank}.md", extract="markdown/1:"+"cd"*32, span=Span(1, 1), text=text_hash(text))
    return Evidence(citation=citation, text=text, title=title, rank=rank, score=score, marks=tuple((a, b) for a,b,_ in marks), terms=tuple(dict.fromkeys(word for *_,word in marks)), channels=channels or {})

texts = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=12)), max_size=14).map(" ".join)

@settings(max_examples=300, deadline=None)
@given(query=texts, passages=st.lists(texts, min_size=1, max_size=4), common=st.integers(0, 1000))
def test_signals_are_shares(query, passages, common):
    terms = query_terms(query, 64)[0]
    if not terms: return
    rarity = rarity_of({term.token: common if at % 2 else 0 for at,term in enumerate(terms)}, 1000)
    items = [evidence(text, terms, rank, 5.0-rank) for rank,text in enumerate(passages, 1)]
    worth = worth_of(terms, rarity)
    assert abs(sum(worth.shares.values())-1) < 1e-9
    signals,absent = passage_signals(items, worth)
    assert 0 <= absent <= 1+1e-9
    for one in signals:
        assert all(-1e-9 <= value <= 1.0001 for value in one.values()), one
        assert one["together"] <= one["coverage"]+1e-4
    made = judged(shipped_calibration(), items, terms, rarity, 0.5)
    assert made.outcome in ("found", "weak") and 0 <= made.confidence <= 1 and all(0 <= item.relevance <= 1 for item in made.items)
    assert bool(made.note)==(made.outcome=="weak")

@settings(max_examples=200, deadline=None)
@given(query=st.lists(st.sampled_from([word for word in WORDS if word not in ("the", "What", "😀", "x"*200)]), min_size=1, max_size=6))
def test_the_query_itself_holds_all_of_itself(query):
    query = " ".join(query)
    terms = query_terms(query, 64)[0]
    worth = worth_of(terms, rarity_of({term.token: 3 for term in terms}, 1000))
    assert passage_signals([evidence(query, terms)], worth)[0][0]["coverage"]==1.0

def test_a_name_with_a_digit_is_held_whole_or_not_at_all():
    terms = query_terms("RV-3 opens", 64)[0]
    worth = worth_of(terms, rarity_of({term.token: 10 for term in terms}, 1000))
    held = lambda text, title="": passage_signals([evidence(text, terms, title=title)], worth)[0][0]["coverage"]
    assert held("RV-2 opens at 3 bar, of the RV kind")==0.5 and held("RV-3 opens")==1.0 and held("it opens", title="The RV-3")==1.0

@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{}", b"\xff\xfe", b'{"format":"mimirag-calibration/1","fitted_on":[],"judges":[]}', b"9"*5000, b" "*(2**20+1), b"["*100_000])
def test_what_is_no_calibration_stops_with_a_sentence(tmp_path, text):
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a.md").write_text("The relief valve opens at 6.2 bar.\n")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
    with KnowledgeBase(tmp_path/"mimirag.toml") as kb:
        kb.build()
        assert kb.search("relief valve").outcome=="found"
        beside(kb.profile.index).write_bytes(text)
        with pytest.raises(UsageError, match="calibrat"): kb.search("relief valve")
        beside(kb.profile.index).unlink()
        assert kb.search("relief valve").outcome=="found"

def of(weak_below: float|None, **weights: float) -> Calibration:
    separation = Separation(area=0.9, precision=0.9, recall=0.5, risk=0.1, rule_of_thumb=(0.5, 0.5))
    return Calibration(fitted_on=(), judges=[Judge(reply=Curve(weights=weights, constant=0), passage=Curve(weights={}, constant=0), weak_below=weak_below, separation=separation)])

def test_a_calibration_beside_the_index_is_used_at_once(tmp_path):
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a.md").write_text("The relief valve opens at 6.2 bar.\n")
    (tmp_path/"log.jsonl").write_text(json.dumps(dict(id="1", text="The relief valve was changed in May."))+"\n")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n[[source]]\nid = "log"\nkind = "records"\nstore = "jsonl"\npath = "log.jsonl"\n')
    with KnowledgeBase(tmp_path/"mimirag.toml") as kb:
        kb.build()
        both,docs,log = (lambda: kb.search("relief valve"), lambda: kb.search("relief valve", sources="docs"), lambda: kb.search("relief valve", sources="log"))
        assert [ask().outcome for ask in (both, docs, log)]==["found"]*3
        beside(kb.profile.index).write_text(of(0.999, coverage=0.1).model_dump_json())
        for ask in (both, docs, log):
            reply = ask()
            assert reply.outcome=="weak" and any(note.startswith("weak: ") for note in reply.scope.notes) and reply.confidence < 0.999
            assert all(item.relevance==0.5 for item in reply)
        beside(kb.profile.index).write_text(of(0.1, coverage=0.1).model_dump_json())
        assert [ask().outcome for ask in (both, docs, log)]==["found"]*3
        half = kb.search("relief valve changed May")
        assert half.outcome=="found" and not any(note.startswith("weak: ") for note in half.scope.notes)
        assert half.confidence==max(kb.search("relief valve changed May", sources=id).confidence for id in ("docs", "log"))

def test_the_rule_of_thumb_stays_where_nothing_separates():
    terms = query_terms("relief walrus tusk winter", 64)[0]
    rarity = rarity_of({term.token: 5 for term in terms}, 1000)
    made = judged(of(None, coverage=50.0), [evidence("relief", terms)], terms, rarity, 0.0)
    assert made.outcome=="weak" and made.confidence > 0.9 and "rule of thumb" in made.note

def test_vectors_have_their_own_judge():
    terms = query_terms("relief valve", 64)[0]
    rarity = rarity_of({term.token: 5 for term in terms}, 1000)
    lexical,near = of(0.1, coverage=1.0).judges[0], of(0.9, nearest=1.0).judges[0]
    both = Calibration(fitted_on=(), judges=[near, lexical])
    plain = [evidence("relief valve", terms)]
    assert judged(both, plain, terms, rarity, 0).outcome=="found"
    with_vectors = [evidence("relief valve", terms, channels={"dense": Channel(rank=1, score=0.2)}), evidence("valve", terms, 2)]
    made = judged(both, with_vectors, terms, rarity, 0)
    assert made.outcome=="weak" and made.signals["nearest"]==0.2 and [item.signals["similarity"] for item in made.items]==[0.2, 0.2]

def test_a_curve_finds_the_one_that_made_the_answers():
    import math
    draw = random.Random(1)
    rows = [dict(a=draw.random(), b=draw.random()) for _ in range(20_000)]
    good = [draw.random() < 1/(1+math.exp(-(4*row["a"]-2*row["b"]-0.5))) for row in rows]
    curve = fitted(rows, good, [1.0]*len(rows), ["a", "b"])
    assert abs(curve.weights["a"]-4) < 0.2 and abs(curve.weights["b"]+2) < 0.2 and abs(curve.constant+0.5) < 0.2

def test_chance_does_not_separate():
    "Of signals that say nothing, no calibration claims that they do"
    clean = 0
    for seed in range(12):
        draw = random.Random(seed)
        known = [Known(str(at), "s", draw.random() < 0.6, signals := {name: draw.random() for name in ("coverage", "together", "absent", "lead")}, ((dict(signals, share=1.0), draw.random() < 0.5),)) for at in range(120)]
        clean += calibrate(known, {"s": ""}).judges[0].separates
    assert clean==0

def test_cuts_do_not_part_equal_probabilities():
    cut = cut_of([0.2]*9+[0.5]*3, [False]*8+[True]+[True]*3)
    assert cut==0.35
    assert cut_of([0.2]*10, [False]*8+[True]*2) is None
