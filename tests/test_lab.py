"""The lab as a whole: measures on awkward runs, the gate against those who would get round it, and the statistics on simulated comparisons"""
import json, math, random, re, subprocess, sys
from pathlib import Path
import numpy as np
import pytest
pytest.importorskip("ir_measures")
pytest.importorskip("scipy")
pytest.importorskip("statsmodels")
pytest.importorskip("tomlkit")
from mimirag.evidence.errors import UsageError
from mimirag.lab.gate import check, introduce, promote, refusals
from mimirag.lab.judge import _decide, judge
from mimirag.lab.ledger import append, find_workspace, read_ledger
from mimirag.lab.measures import measure, ranked
from mimirag.lab.plan import parse_plan
from mimirag.lab.record import read_record
from mimirag.lab.runs import declare, run
from mimirag.lab.sets import read_set
from mimirag.lab.statistics import differences, estimate, holm, needed, randomisation
from mimirag.evidence.text import sha256
from mimirag.sources.defaults import shipped

ROOT = Path(__file__).resolve().parents[1]

# Measures

def values(qrels, run, *metrics): return {name: by_query for name,by_query in measure(qrels, run, metrics).items()}

def test_equal_scores_do_not_depend_on_the_order_of_arrival():
    qrels,pairs = {"q1": {"b": 1}}, [("b", 1.0), ("a", 1.0), ("c", 1.0)]
    found = [values(qrels, {"q1": list(order)}, "MRR@10", "nDCG@3") for order in (pairs, pairs[::-1], [pairs[1], pairs[0], pairs[2]])]
    assert found[0]==found[1]==found[2]=={"MRR@10": {"q1": 0.5}, "nDCG@3": {"q1": pytest.approx(0.6309297535714575)}}

@pytest.mark.parametrize("run", [{"q1": ["a", "x"], "q2": []}, {"q1": ["a", "x"]}])
def test_a_query_without_results_counts_as_zero(run):
    for by_query in values({"q1": {"a": 1}, "q2": {"b": 1}}, run, "recall@10", "MRR@10", "nDCG@10", "hit@1", "all@10", "precision@5").values(): assert by_query["q2"]==0 and len(by_query)==2

def test_repeated_documents_count_once():
    run = {"q1": [("a", 3.0), ("a", 2.5), ("a", 2.0), ("x", 1.0), ("b", 0.5)]}
    found = values({"q1": {"a": 1, "b": 1}}, run, "recall@3", "nDCG@3", "precision@3")
    assert ranked(run["q1"])==["a", "x", "b"]
    assert [found[name]["q1"] for name in found]==[1.0, pytest.approx(0.9197207891481876), pytest.approx(2/3)]

def test_the_ideal_ranking_comes_from_the_judgments():
    found = values({"q1": {"a": 1, "b": 1, "c": 1}}, {"q1": [("a", 2.0), ("x", 1.0)]}, "nDCG@10", "recall@10")
    assert found["nDCG@10"]["q1"]==pytest.approx(1/(1+1/math.log2(3)+1/math.log2(4))) and found["recall@10"]["q1"]==pytest.approx(1/3)

def test_fewer_results_than_k():
    found = values({"q1": {"a": 1, "b": 1}}, {"q1": [("a", 1.0)]}, "precision@5", "recall@5")
    assert found=={"precision@5": {"q1": 0.2}, "recall@5": {"q1": 0.5}}
    with pytest.raises(UsageError, match="without an identifier"): values({"q1": {"a": 1}}, {"q1": [("a", 2.0), (None, 1.0)]}, "recall@5")

def test_no_measure_exceeds_one_on_random_runs():
    rng = random.Random(11)
    for _ in range(200):
        ids = [f"d{number}" for number in range(8)]
        run = {f"q{number}": [(rng.choice(ids), rng.choice([0.0, 0.5, 1.0])) for _ in range(rng.randrange(12))] for number in range(4)}
        qrels = {query: {id: rng.choice([0, 1, 2]) for id in rng.sample(ids, 3)} for query in run}
        found = values(qrels, run, "nDCG@5", "recall@5", "MRR@5", "precision@5", "success@5", "all@5")
        assert all(0 <= value <= 1 for by_query in found.values() for value in by_query.values())
        shuffled = {query: rng.sample(rows, len(rows)) for query,rows in run.items()}
        best = {query: [(id, max(score for other,score in rows if other==id)) for id in {id for id,_ in rows}] for query,rows in shuffled.items()}
        assert values(qrels, best, "nDCG@5", "MRR@5")==values(qrels, {query: ranked(rows) for query,rows in run.items()}, "nDCG@5", "MRR@5")

@pytest.mark.parametrize("grades", [dict(a=3, b=1, c=0, d=-1), dict(a=0.3, b=0.1, c=0.0, d=-0.1), dict(a=3e9, b=1e9), dict(a=1, b=1)], ids=["whole", "decimal", "large", "binary"])
def test_gain_is_binary_whatever_the_grades(grades):
    found = values({"q": grades}, {"q": ["d", "b", "c", "a"]}, "nDCG@10", "recall@2", "MRR@10")
    assert found["nDCG@10"]["q"]==pytest.approx((1/math.log2(3)+1/math.log2(5))/(1+1/math.log2(3)), abs=1e-9) and found["recall@2"]["q"]==0.5 and found["MRR@10"]["q"]==0.5

# Statistics

def test_no_difference_is_no_evidence():
    same = {f"q{number}": value for number,value in enumerate([0.5, 0.25, 1.0, 0.0]*10)}
    seen = estimate(same, same)
    assert (seen.difference, seen.p, seen.low, seen.high)==(0.0, 1.0, 0.0, 0.0)
    balanced = [0.5]*6+[-0.5]*6+[0.0]*30
    assert randomisation(balanced) >= 0.9

def test_neither_p_nor_interval_depends_on_the_order_of_queries():
    rng = np.random.default_rng(4)
    after = {f"q{number}": float(value) for number,value in enumerate(rng.normal(0.03, 0.3, 61))}
    before,shuffled = dict.fromkeys(after, 0.1), {query: after[query] for query in rng.permutation(list(after))}
    assert estimate(before, after)==estimate(dict(reversed(before.items())), shuffled)

def test_several_comparisons_at_once():
    assert holm({"v1": 0.012, "v2": 0.03, "v3": 0.045, "v4": 0.2})==pytest.approx({"v1": 0.048, "v2": 0.09, "v3": 0.09, "v4": 0.2})

def test_pairs_are_matched_by_query():
    assert differences({"q1": 0.1, "q2": 0.9, "q3": 0.5}, {"q3": 0.5, "q2": 0.9, "q1": 0.1})=={"q1": 0.0, "q2": 0.0, "q3": 0.0}
    with pytest.raises(UsageError, match="'q3' in the baseline"): differences({"q1": 0.1, "q3": 0.5}, {"q1": 0.1})

PLAN = parse_plan('''
name = "simulated"
question = "What do the statistics do?"
baseline = {name = "before"}
candidate = {name = "after", defaults = {lexical = {title = 3.0}}}
primary = {metric = "nDCG@10", smallest_effect = 0.04}
sets = [{name = "made"}]
''')

def simulated(rng: np.random.Generator, number: int, shift: float) -> dict:
    "Two arms that agree on most queries, as two good systems do; `shift` is the true mean difference"
    before = rng.choice([0.0, 0.387, 0.431, 0.5, 0.631, 1.0], number)
    moves = rng.random(number) < 0.4
    after = np.where(moves, before+rng.normal(0, 0.16, number), before)+shift
    keys = [f"q{place}" for place in range(number)]
    return dict(zip(keys, before.tolist())), dict(zip(keys, after.tolist()))

def shares(shift: float, number: int, times: int) -> tuple[float, float, float]:
    "Shares of comparisons with p below alpha, decided as promoted, and whose interval holds the true difference"
    rng,significant,promoted,held = np.random.default_rng(2026), 0, 0, 0
    for _ in range(times):
        seen = estimate(*simulated(rng, number, shift), resamples=1_000, seed=int(rng.integers(2**31)))
        significant += seen.p < PLAN.primary.alpha
        promoted += _decide(PLAN, seen, [])[0]=="promoted"
        held += seen.low <= shift <= seen.high
    return significant/times, promoted/times, held/times

DEVIATION = math.sqrt(0.4)*0.16 # of the simulated differences

def test_false_promotions_stay_within_alpha():
    number = needed(PLAN.primary.smallest_effect, DEVIATION)
    significant,promoted,held = shares(0.0, number, 2_000)
    print(f"2,000 null comparisons of {number} queries: p below 0.05 in {significant:.4f}, promoted {promoted:.4f}, interval holds 0 in {held:.4f}")
    assert significant < 0.05+3*math.sqrt(0.05*0.95/2_000) and promoted <= PLAN.primary.alpha and held > 0.91

def test_power_is_what_the_plan_promises():
    number = needed(PLAN.primary.smallest_effect, DEVIATION, power=0.8)
    significant,promoted,_ = shares(PLAN.primary.smallest_effect, number, 600)
    print(f"600 comparisons of {number} queries with an effect of {PLAN.primary.smallest_effect}: p below 0.05 in {significant:.3f}; promoted {promoted:.3f}")
    assert abs(significant-0.8) < 0.06 and abs(promoted-0.8) < 0.06

# The gate

def write_set(folder: Path, harder: bool = False):
    "Thirty documents whose titles say what they are, while their texts speak of their neighbours"
    names = [f"{part} {number}" for part in "pump valve flap gate rack basin sensor panel cable motor".split() for number in ("alpha", "beta", "gamma")]
    rows = [dict(id=name, title=f"The {name}", text=f"The {names[(number+1) % 30]} is nearby, and is inspected with it.") for number,name in enumerate(names)]
    folder.mkdir(exist_ok=True)
    (folder/"corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder/"queries.jsonl").write_text("\n".join(json.dumps(dict(id=f"about {name}", text=f"How is the {name} {'maintained' if harder else 'inspected'}?")) for name in names))
    (folder/"qrels.tsv").write_text("\n".join(f"about {name}\t{name}\t1" for name in names)+"\n")

TITLES = '''
name = "title-weight"
question = "Should words of a title weigh more?"
baseline = {name = "as shipped"}
candidate = {name = "title 12", defaults = {lexical = {title = 12.0, document = 0.0}}}
primary = {metric = "nDCG@10", smallest_effect = 0.1}
[[sets]]
name = "parts"
path = "../../parts"
'''

@pytest.fixture
def here(tmp_path):
    "A checkout in small, its defaults introduced, a plan declared and run, which came out as promoted"
    write_set(tmp_path/"parts")
    for folder in ("experiments/plans", "mimirag"): (tmp_path/folder).mkdir(parents=True)
    here = find_workspace(tmp_path/"experiments")
    tables = "".join(f"[{{}}{table}]\n"+"".join(f"{key} = {json.dumps(value)}\n" for key,value in row.items()) for table,row in shipped().items())
    here.defaults.write_text(tables.replace("{}", ""))
    (here.plans/"first-values.toml").write_text('name = "first-values"\nintroduces = "What the first version came with"\n'+tables.replace("{}", "values."))
    introduce("first-values", here)
    (here.plans/"title-weight.toml").write_text(TITLES)
    return here

def planned(here, name="title-weight"):
    declare(name, here)
    return run(name, here)

def test_a_declared_run_is_promoted(here):
    made,place = planned(here)
    assert made.analysis.decision=="promoted" and refusals("title-weight", here)==[] and read_record(place)==made.record
    promote("title-weight", here)
    assert check(here)==[] and "title = 12.0" in here.defaults.read_text()

def doctored(here, made, **changes):
    "Keep a changed record, with an entry in the ledger that fits it, as someone would who writes both"
    record = made.record.model_copy(update=changes)
    here.results.mkdir(exist_ok=True)
    place = here.results/f"{record.id}.json"
    place.write_text(record.to_json())
    append(here, "ran", plan=record.name, digest=record.plan_digest, record=record.id, record_digest=sha256(record.to_json().encode()), decision="promoted", method=record.method)
    return record.id

def refused(here, name, words):
    before = here.defaults.read_text()
    with pytest.raises(UsageError, match=words): promote(name, here)
    assert here.defaults.read_text()==before and not any(entry["kind"]=="promoted" for entry in read_ledger(here)[0])

def test_refuses_a_plan_later_than_its_results(here):
    made,_ = planned(here)
    refused(here, doctored(here, made, started="2020-01-01T00:00:00+00:00", finished="2020-01-01T00:01:00+00:00"), "later than its results")
    refused(here, doctored(here, made, declared="2020-01-01T00:00:00+00:00"), "another time of declaration")

def test_refuses_a_run_that_came_before_its_declaration(here):
    from mimirag.lab.arms import compare, sets_of
    from mimirag.lab.plan import read_plan
    plan,_ = read_plan(here.plans/"title-weight.toml")
    made = compare(plan.baseline, plan.candidate, sets_of(plan, here.plans), plan)
    entry = declare("title-weight", here) # having seen what comes out
    refused(here, doctored(here, made, plan=parse_plan((here.plans/"title-weight.toml").read_text()), plan_digest=entry["digest"], declared=entry["at"]), "later than its results")

def test_refuses_swapped_cases(here):
    declare("title-weight", here)
    write_set(here.folder.parent/"parts", harder=True)
    made,place = run("title-weight", here)
    assert made.analysis.decision=="invalid" and "not the set that was planned" in made.analysis.reasons[0]
    refused(here, "title-weight", "not the set that was planned")

def test_refuses_missing_rows(here):
    made,_ = planned(here)
    losers = [row for row in made.record.rows if row.candidate.values["nDCG@10"] <= row.baseline.values["nDCG@10"]]
    refused(here, doctored(here, made, rows=[row for row in made.record.rows if row not in losers[:5]]), "rows are missing")
    fewer = made.record.sets["parts"].model_copy(update=dict(queries=25, answerable=25))
    refused(here, doctored(here, made, rows=[row for row in made.record.rows if row not in losers[:5]], sets={"parts": fewer}), "planned were 30")

def test_refuses_another_commits_code(here):
    made,_ = planned(here)
    refused(here, doctored(here, made, code=made.record.code.model_copy(update=dict(digest="4"*64, commit="a"*40))), "measured with other code")

def test_refuses_too_few_queries_for_the_declared_effect(here):
    (here.plans/"small-effect.toml").write_text(TITLES.replace("title-weight", "small-effect").replace("0.1}", "0.02}"))
    made,_ = planned(here, "small-effect")
    assert made.analysis.decision=="inconclusive"
    refused(here, "small-effect", "too few for the declared effect")
    (here.plans/"hopeless.toml").write_text(TITLES.replace("title-weight", "hopeless").replace("0.1}", "0.02, deviation = 0.2}"))
    with pytest.raises(UsageError, match="it takes"): declare("hopeless", here)

def test_refuses_defaults_that_moved_meanwhile_and_a_hand_edited_default(here):
    planned(here)
    here.defaults.write_text(here.defaults.read_text().replace("title = 2.5", "title = 3.5"))
    refused(here, "title-weight", "no longer those that the candidate was compared with")
    assert any("[lexical] title is 3.5, but the ledger leads to 2.5" in problem for problem in check(here))

def test_refuses_a_typed_decision(here):
    (here.plans/"worse.toml").write_text(TITLES.replace("title-weight", "worse").replace("title = 12.0", "title = 0.0"))
    made,_ = planned(here, "worse")
    assert made.analysis.decision=="not_promoted"
    lines = here.ledger.read_text().splitlines(keepends=True)
    here.ledger.write_text("".join([*lines[:-1], lines[-1].replace("not_promoted", "promoted")]))
    refused(here, "worse", "came out as not_promoted")
    append(here, "promoted", plan="worse", digest=made.record.plan_digest, record=made.record.id, record_digest=sha256(made.record.to_json().encode()), changes={})
    here.defaults.write_text(here.defaults.read_text().replace("title = 2.5", "title = 0.0").replace("document = 0.5", "document = 0.0"))
    assert any("came out as not_promoted" in problem for problem in check(here))

def test_refuses_an_edited_record_and_a_foreign_one(here):
    made,place = planned(here)
    text = place.read_text()
    place.write_text(text.replace('"nDCG@10": 0.', '"nDCG@10": 0.9', 1))
    refused(here, "title-weight", "was changed after it was kept")
    elsewhere = here.folder.parent/"copy.json"
    elsewhere.write_text(text)
    refused(here, elsewhere, "is not in the ledger")

def test_a_plan_is_run_once_and_an_invalid_run_may_be_repeated(here):
    declare("title-weight", here)
    write_set(here.folder.parent/"parts", harder=True)
    assert run("title-weight", here)[0].analysis.decision=="invalid"
    write_set(here.folder.parent/"parts")
    assert run("title-weight", here)[0].analysis.decision=="promoted"
    with pytest.raises(UsageError, match="run once"): run("title-weight", here)

def test_a_default_cannot_be_introduced_over_another(here):
    (here.plans/"again.toml").write_text('name = "again"\nintroduces = "I would rather have it so, since it feels right"\n[values.lexical]\ntitle = 9.0\n')
    here.defaults.write_text(here.defaults.read_text().replace("title = 2.5", "title = 9.0"))
    with pytest.raises(UsageError, match="in the ledger already"): introduce("again", here)
    append(here, "introduced", plan="again", digest=sha256((here.plans/"again.toml").read_bytes()), values=dict(lexical=dict(title=9.0)))
    assert any("a second time" in problem for problem in check(here))

def test_a_broken_ledger_is_told_and_not_written_to(here):
    planned(here)
    here.ledger.write_text(here.ledger.read_text().replace('"decision": "promoted"', '"decision": "PROMOTED"'))
    append_line = here.ledger.read_text()
    lines = append_line.splitlines(keepends=True)
    here.ledger.write_text("".join([lines[0], *lines[2:]]))
    assert any("does not follow" in problem for problem in check(here))
    with pytest.raises(UsageError): promote("title-weight", here)

def test_nothing_that_lies_in_the_ledger_is_a_traceback(here):
    "Entries that lack fields, name files that lead elsewhere, or are of strange types are problems, told in a sentence"
    made,_ = planned(here)
    text = here.ledger.read_text()
    for facts in (dict(kind="promoted"), dict(kind="ran", record="../../../etc/passwd", record_digest="x"), dict(kind="promoted", plan=7, record=[1], digest=None, record_digest={}), dict(kind="introduced", plan="first-values", digest="0", values=[1]),
                  dict(kind="introduced", plan="first-values", digest="0", values={}, retires=5), dict(kind="promoted", record=made.record.id, record_digest="0", digest="0"), dict(kind="ran", plan="a\0b", record="a\0b"), dict(kind="declared", plan="x"*5000, digest="0"), dict(kind="luck", plan="title-weight", digest=made.record.plan_digest, record=made.record.id, record_digest=sha256(made.record.to_json().encode()))):
        here.ledger.write_text(text)
        append(here, **facts)
        assert check(here) and all(isinstance(problem, str) for problem in check(here))

def test_the_command_line_says_it_in_one_line(here):
    def mimirag(*arguments): return subprocess.run([sys.executable, "-m", "mimirag", "lab", *arguments, "--experiments", str(here.folder)], capture_output=True, text=True)
    for arguments,code,words in [(["compare", "title-weight"], 2, "is not declared"), (["declare", "title-weight"], 0, ""), (["compare", "title-weight"], 0, ""), (["compare", "title-weight"], 2, "run once"), (["check"], 0, ""),
                                 (["runs"], 0, ""), (["promote", "nothing"], 2, "no run is called"), (["promote", "title-weight"], 0, ""), (["check"], 0, ""), (["promote", "title-weight"], 2, "promoted already")]:
        done = mimirag(*arguments)
        assert done.returncode==code and words in done.stderr and "Traceback" not in done.stderr and (code==0 or done.stderr.count("\n")==1), (arguments, done.stderr)
    assert json.loads(mimirag("check", "--json").stdout)["defaults"]["[lexical] title"]=={"value": 12.0, "plan": "title-weight"}

# The project's own

def test_every_default_comes_from_the_ledger():
    assert check(find_workspace(ROOT/"experiments"))==[]

def test_a_question_asked_again_has_to_answer_more_clearly(here):
    "Of many tries one succeeds by luck: p times the number of tries has to stay below alpha"
    def tried(name, title):
        (here.plans/f"{name}.toml").write_text(TITLES.replace('"title-weight"', f'"{name}"').replace("title = 12.0, document = 0.0", f"title = {title}"))
        return planned(here, name)[0]
    for number in range(3): assert tried(f"try-{number}", 1.0+number/10).analysis.decision!="promoted"
    entry = {name: value for name,value in read_ledger(here)[0][-1].items() if name not in ("kind", "at", "previous")}
    assert planned(here)[0].analysis.decision=="promoted" and refusals("title-weight", here)==[]
    for _ in range(30): append(here, "ran", **entry) # thirty more tries
    (here.plans/"at-last.toml").write_text(TITLES.replace('"title-weight"', '"at-last"'))
    assert planned(here, "at-last")[0].analysis.decision=="promoted"
    refused(here, "at-last", "were tried 34 times before")

def test_a_default_that_is_gone_is_retired_and_does_not_come_back(here):
    here.defaults.write_text(here.defaults.read_text().replace("[outcome]\ncoverage = 0.5\n", ""))
    assert any("no longer among the defaults" in problem for problem in check(here))
    (here.plans/"no-outcome.toml").write_text('name = "no-outcome"\nintroduces = "Outcomes are calibrated in another way now"\nretires = ["outcome.coverage"]\n')
    introduce("no-outcome", here)
    assert check(here)==[]
    here.defaults.write_text(here.defaults.read_text()+"[outcome]\ncoverage = 0.9\n")
    (here.plans/"outcome-again.toml").write_text('name = "outcome-again"\nintroduces = "It is back, with a value that I prefer"\n[values.outcome]\ncoverage = 0.9\n')
    with pytest.raises(UsageError, match="in the ledger already"): introduce("outcome-again", here)
    assert check(here)

@pytest.mark.parametrize("edit", ['title = "much"', "title = true", "title = nan", "title = -inf", "title = 1"+"0"*400, "title = [1]", "title = 2.5\ntitle = 3", "stray = 1"])
def test_a_default_that_is_no_number_is_told_in_a_sentence(here, edit):
    text = here.defaults.read_text()
    here.defaults.write_text(("stray = 1\n"+text) if edit.startswith("stray") else text.replace("title = 2.5", edit))
    done = subprocess.run([sys.executable, "-m", "mimirag", "lab", "check", "--experiments", str(here.folder)], capture_output=True, text=True)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr and (done.stdout+done.stderr).count("\n")==1

def test_a_case_that_no_longer_holds_is_told_and_not_compared(tmp_path):
    from mimirag.lab import Arm, compare, evaluate, read_case_set
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a[1].md").write_text("# Valve\n\nIt opens at 6.2 bar.\n")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
    (tmp_path/"cases.jsonl").write_text(json.dumps(dict(id="c", question="When does it open?", gold=[dict(source="docs", path="a[1].md", lines=[3, 3], quote="opens at 6.2 bar")]))+"\n")
    assert evaluate(read_case_set(tmp_path/"cases.jsonl", tmp_path))["stale"]==[]
    (tmp_path/"docs/a[1].md").write_text("# Valve\n\n\n\n\nIt opens at 6.2 bar.\n")
    assert "does not hold" in evaluate(read_case_set(tmp_path/"cases.jsonl", tmp_path))["stale"][0]
    with pytest.raises(UsageError, match="put the cases right"): compare(Arm(name="a"), Arm(name="b", defaults=dict(lexical=dict(title=1.0))), read_case_set(tmp_path/"cases.jsonl", tmp_path))

def test_a_clock_that_runs_behind_is_told(here, monkeypatch):
    import mimirag.lab.ledger as ledger
    monkeypatch.setattr(ledger, "now", lambda: "2001-01-01T00:00:00+00:00")
    before = here.ledger.read_text()
    with pytest.raises(UsageError, match="yet to come"): append(here, "declared", plan="x", digest="0")
    assert here.ledger.read_text()==before

CORPUS,QUERIES = '{"_id": "1", "title": "a", "text": "valve opens"}\n{"_id": "01", "title": null, "text": "pump starts"}\n', '{"_id": "q1", "text": "valve"}\n{"_id": "q2", "text": "pump"}\n'

@pytest.mark.parametrize("qrels", ["query-id\tcorpus-id\tscore\nq1\t1\t1\nq2\t01\t2\n", "query-id\tcorpus-id\tscore\r\nq1\t1\t1\r\nq2\t01\t1\r\n", "\ufeffq1\t1\t1\nq2\t01\t1\n", "q1\t1\t1.0\nq2\t01\t0.5\n", "q1 0 1 1\nq2 0 01 1\n", "q1\t1\t1\nq1\t01\t-1\nq2\t01\t1\n\n"],
                         ids=["heading", "CRLF", "BOM", "decimal grades", "TREC", "a grade below zero"])
def test_sets_as_people_write_them(tmp_path, qrels):
    for name,text in {"corpus.jsonl": "\ufeff"+CORPUS, "queries.jsonl": QUERIES, "qrels.tsv": qrels}.items(): (tmp_path/name).write_bytes(text.encode())
    found = read_set(tmp_path)
    assert [row["id"] for row in found.corpus]==["1", "01"] and {query: [id for id,grade in rows.items() if grade > 0] for query,rows in found.qrels.items()}=={"q1": ["1"], "q2": ["01"]}

@pytest.mark.parametrize("name, text, words", [("qrels.tsv", "q1\t1\t0\nq1\t1\t1\n", "once more, and otherwise"), ("qrels.tsv", "q9\t1\t1\n", "not in queries.jsonl"), ("qrels.tsv", "q1\t7\t1\n", "not in the corpus"), ("qrels.tsv", "q1\t1\tmuch\nq2\t1\t1\n", "line 1 is not 'query, document, grade'"), ("qrels.tsv", "q1\t1\tnan\n", "line 1 is not"), ("qrels.tsv", "query-id\tcorpus-id\tscore\n", "holds no judgment"),
                                               ("queries.jsonl", '["a"]\n', "no object"), ("corpus.jsonl", '{"_id": "1", "text": "x", "meta": "y"}\n', "no object"), ("corpus.jsonl", CORPUS+CORPUS, "stands twice"), ("queries.jsonl", '{"_id": "q1"}\n', "needs 'text'"),
                                               ("corpus.jsonl", '{"_id": null, "text": "x"}\n', "needs 'id'"), ("queries.jsonl", '{"_id": "q1", "text": "x", "type": ["a"]}\n', "'type' that is no text"), ("corpus.jsonl", '{"_id": "1", "text": "\\ud800"}\n', "half of a character"),
                                               ("corpus.jsonl", '{"a": '+"["*100_000+"]"*100_000+"}\n", "is not JSON"), ("corpus.jsonl", b'{"_id": "1", "text": "\xe9"}\n', "not UTF-8"), ("qrels.tsv", b"q\xe9\t1\t1\n", "not UTF-8"), ("queries.jsonl", "", "it is empty")])
def test_sets_with_faults_are_told_in_a_sentence(tmp_path, name, text, words):
    for part,given in ({"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels.tsv": "q1\t1\t1\n"} | {name: text}).items(): (tmp_path/part).write_bytes(given if isinstance(given, bytes) else given.encode())
    with pytest.raises(UsageError, match=re.escape(words)) as told: read_set(tmp_path)
    assert "\n" not in str(told.value)

@pytest.mark.parametrize("rows, judged, found", [(['{"_id": "1", "title": "Hydrant", "text": ""}'], "1", 1.0), (['{"_id": "1", "text": "the hydrant", "meta": {"page": 3}}'], "1", 1.0), (['{"_id": "1", "text": "the hydrant", "meta": {"start": 0}}'], "1", 1.0),
                                                 (['{"_id": "1", "text": "the hydrant", "meta": {"conversation": "../../x"}}'], "1", 1.0), (['{"_id": "1", "text": "the hydrant", "meta": {"conversation": "'+"x"*300+'"}}'], "1", 1.0), (['{"_id": 7, "text": "the hydrant"}'], "7", 1.0)],
                         ids=["a title only", "a page of a file that is not there", "a stretch without an end", "a group that leads outside", "a group that is too long", "a number for an id"])
def test_sets_of_texts_lose_no_text(tmp_path, rows, judged, found):
    from mimirag.lab.eval import evaluate
    for name,text in {"corpus.jsonl": "\n".join([*rows, '{"_id": "other", "text": "a valve"}']), "queries.jsonl": '{"_id": "q", "text": "hydrant"}', "qrels.tsv": f"q\t{judged}\t1\n"}.items(): (tmp_path/name).write_text(text)
    assert evaluate(tmp_path)["metrics"]["hit@1"]==found

def test_a_set_that_is_in_no_files_has_a_digest_of_its_own(tmp_path):
    from mimirag.lab.sets import EvalSet
    one,other = (EvalSet(tmp_path, [dict(id="d", text=text)], [dict(id="q", text="valve")], {"q": {"d": 1}}) for text in ("valve", "pump"))
    assert one.digest()!=other.digest() and one.digest()==EvalSet(tmp_path/"x", [dict(text="valve", id="d")], one.queries, one.qrels).digest()

def test_questions_that_are_few_or_do_not_move_rule_nothing_out(here):
    "An interval without width is no proof: two questions that tie, or a guard of five, decide nothing"
    made,_ = planned(here)
    def of(number, change=0.0):
        rows = [row.model_copy(update=dict(candidate=row.baseline.model_copy(update=dict(values={"nDCG@10": row.baseline.values["nDCG@10"]-change})))) for row in made.record.rows[:number]]
        plan = made.record.plan.model_copy(update=dict(sets=[made.record.plan.sets[0].model_copy(update=dict(queries=number))]))
        return judge(made.record.model_copy(update=dict(plan=plan, rows=rows, sets={"parts": made.record.sets["parts"].model_copy(update=dict(queries=number, answerable=number))})))
    assert [of(number).decision for number in (2, 19, 25)]==["inconclusive"]*3
    assert of(30).decision=="not_promoted" # 1 - 0.05^(1/30) is below the 0.1 that matter
    assert of(12, 0.1).decision=="not_promoted" # a loss that is more than chance needs no more

def test_a_plan_that_lies_elsewhere_is_none(here):
    "An entry that names a file outside of the plans, where nobody would look for it"
    planned(here)
    (here.folder.parent/"hidden.toml").write_text((here.plans/"title-weight.toml").read_text())
    append(here, "declared", plan="../../hidden", digest=sha256((here.folder.parent/"hidden.toml").read_bytes()))
    assert any("no name of a plan" in problem for problem in check(here))
    refused(here, "title-weight", "no name of a plan")

# Ways round the gate

def promoted_by_hand(here, made, **facts):
    "A line that promotes, with the file of defaults to fit, as someone would write them who does not ask the gate"
    from mimirag.lab.gate import _written_steps
    record = made.record
    append(here, "promoted", **{**dict(plan=record.name, digest=record.plan_digest, record=record.id, record_digest=sha256(record.to_json().encode()), changes=_written_steps(record)), **facts})
    here.defaults.write_text("".join(f"[{table}]\n"+"".join(f"{key} = {json.dumps(value)}\n" for key,value in row.items()) for table,row in record.defaults["candidate"].items()))

def test_a_crippled_baseline_promotes_nothing(here):
    "Both arms without the share of the document, which the defaults have: what is measured is no change of the defaults"
    (here.plans/"title-weight.toml").write_text(TITLES.replace('{name = "as shipped"}', '{name = "as shipped", defaults = {lexical = {document = 0.0}}}'))
    made,_ = planned(here)
    assert made.analysis.decision=="promoted"
    refused(here, "title-weight", "no longer those that the candidate was compared with")
    promoted_by_hand(here, made)
    here.defaults.write_text(here.defaults.read_text().replace("document = 0.0", "document = 0.5"))
    assert any("its baseline had [lexical] document = 0.0, where the defaults had 0.5" in problem for problem in check(here))

@pytest.mark.parametrize("facts", [dict(changes={"lexical.title": [2.5, 3.0]}), dict(changes={}), dict(plan="first-values")])
def test_a_promotion_says_what_its_record_says(here, facts):
    made,_ = planned(here)
    promoted_by_hand(here, made, **facts)
    assert any("says something else than" in problem for problem in check(here))

def test_arms_that_differ_in_the_pipeline_promote_no_default(here):
    made,_ = planned(here)
    arms = dict(made.record.arms, candidate=made.record.arms["candidate"].model_copy(update=dict(pipeline="lexical")))
    plan = made.record.plan.model_copy(update=dict(candidate=arms["candidate"]))
    refused(here, doctored(here, made, arms=arms, plan=plan), "differ in the pipeline")

def test_a_run_that_counts_cannot_be_entered_as_invalid(here):
    made,place = planned(here)
    append(here, "ran", plan="title-weight", digest=made.record.plan_digest, record=made.record.id, record_digest=sha256(place.read_bytes()), decision="invalid")
    assert any("entered as invalid" in problem for problem in check(here))

def test_a_look_at_almost_the_same_questions_is_a_look(here):
    "Another digest, or a run that came out as invalid, hides no earlier try"
    declare("title-weight", here)
    corpus = here.folder.parent/"parts/corpus.jsonl"
    text = corpus.read_text()
    corpus.write_text(text+" ")
    assert run("title-weight", here)[0].analysis.decision=="invalid"
    (here.plans/"another.toml").write_text(TITLES.replace('"title-weight"', '"another"'))
    made,_ = planned(here, "another")
    from mimirag.lab.gate import _looks
    entries = read_ledger(here)[0]
    assert _looks(here, entries[:-1], made.record)==1
    corpus.write_text(text)
    assert _looks(here, entries[:-1], run("title-weight", here)[0].record)==0 # its own invalid run was no look

def test_copies_of_questions_add_nothing(here):
    home = here.folder.parent
    write_set(home/"copies")
    sets = '[[sets]]\nname = "copies"\npath = "../../copies"\n'
    (here.plans/"title-weight.toml").write_text(TITLES+sets)
    with pytest.raises(UsageError, match="are the same; leave one out"): declare("title-weight", here)
    (home/"copies/corpus.jsonl").write_text((home/"copies/corpus.jsonl").read_text()+"\n")
    (here.plans/"title-weight.toml").write_text(TITLES+sets)
    made,_ = planned(here)
    assert made.analysis.decision=="invalid" and "30 of the 60 primary questions are copies" in made.analysis.reasons[0]

def test_what_is_tried_outside_does_not_leak_into_a_run(here):
    from mimirag.sources.defaults import trying
    declare("title-weight", here)
    with trying(lexical=dict(title=0.0, heading=0.0, body=0.0)): made,_ = run("title-weight", here)
    (here.plans/"another.toml").write_text(TITLES.replace('"title-weight"', '"another"'))
    clean,_ = planned(here, "another")
    values = lambda made: [(row.baseline.values, row.candidate.values) for row in made.record.rows]
    assert values(made)==values(clean)

def test_the_digest_of_the_code_is_of_all_that_decides(tmp_path, monkeypatch):
    import shutil
    import mimirag.lab.record as record
    package = tmp_path/"mimirag"
    shutil.copytree(ROOT/"mimirag", package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(record, "files", lambda name: package)
    fresh = record.code_digest.__wrapped__
    before = fresh()
    for name,decides in [("__init__.py", True), ("retrieve/more/ranks.py", True), ("extract/words.txt", True), ("lab/report.html", False), ("retrieve/__pycache__/search.cpython-311.pyc", False), ("cli.py", False)]:
        file = package/name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text() if file.exists() else None
        file.write_text((text or "")+"# changed\n")
        assert (fresh()!=before)==decides, name
        file.write_text(text) if text is not None else file.unlink()

def test_a_plan_does_not_choose_its_luck(here):
    for more,words in [("resamples = 1000\n", "greater than or equal to 10000"), ("seed = -1\n", "greater than or equal"), ("resamples = inf\n", "integer")]:
        with pytest.raises(UsageError, match=words): parse_plan(more+TITLES)
    for old,new in [("smallest_effect = 0.1", "smallest_effect = nan"), ("title = 12.0", "title = inf"), ("title = 12.0", "title = true"), ("smallest_effect = 0.1", "smallest_effect = 0.1, alpha = 0.2")]:
        with pytest.raises(UsageError): parse_plan(TITLES.replace(old, new))
    (here.plans/"title-weight.toml").write_text(TITLES.replace('defaults = {', 'pipeline = "luck", defaults = {'))
    with pytest.raises(UsageError, match="there is no pipeline 'luck'"): declare("title-weight", here)

def test_a_merged_ledger_is_told(here):
    declare("title-weight", here)
    lines = here.ledger.read_text().splitlines(keepends=True)
    here.ledger.write_text("".join([lines[0], "<<<<<<< HEAD\n", lines[1], "=======\n", lines[1], ">>>>>>> other\n"]))
    assert any("a merge of two branches left it" in problem for problem in check(here))

def test_two_who_write_at_once_follow_one_another(here):
    code = f"import sys; from mimirag.lab.ledger import *; here = find_workspace({str(here.folder)!r}); [append(here, 'declared', plan=sys.argv[1], digest='0') for _ in range(20)]"
    writers = [subprocess.Popen([sys.executable, "-c", code, name]) for name in ("one", "two", "three")]
    assert [writer.wait() for writer in writers]==[0, 0, 0]
    entries,found = read_ledger(here)
    assert len(entries)==61 and found==[]

def test_a_plan_may_have_dots_in_its_name(here):
    (here.plans/"title.v2.toml").write_text(TITLES.replace('"title-weight"', '"title.v2"'))
    assert declare("title.v2", here)["plan"]=="title.v2"==declare(str(here.plans/"title.v2.toml"), here)["plan"]

# A researcher's own functions, and what is given to them

def quick(home, candidate=None, **more):
    from mimirag.lab import Arm, compare
    return compare(Arm(name="as shipped"), candidate or Arm(name="title 4", defaults=dict(lexical=dict(title=4.0))), more.pop("cases", home/"parts"), **more)

@pytest.mark.parametrize("search, words", [(lambda kb, query, most: 1/0, "division by zero"), (lambda kb, query, most: None, "gave back NoneType"), (lambda kb, query, most: ["a"], "gave back list"), (lambda kb: 1, "TypeError")])
def test_a_search_of_ones_own_that_fails_is_told_and_counts_as_zero(here, search, words):
    from mimirag.lab import Own
    made = quick(here.folder.parent, Own("mine", search))
    assert "30 failed in the candidate (" in str(made) and words in str(made) and made.analysis.primary.estimate.candidate==0

@pytest.mark.parametrize("more, words", [(dict(metrics=[]), "at least one measure"), (dict(metrics=["map"]), "is no measure"), (dict(metrics="span_recall@5"), "of the lines that cases name"), (dict(cases=[]), "at least one that is primary"), (dict(cases=5), "not a int"),
                                         (dict(cases="nowhere"), "there is no corpus"), (dict(cases=__file__), "name one")])
def test_what_cannot_be_compared_is_told(here, more, words):
    with pytest.raises(UsageError, match=words): quick(here.folder.parent, **more)
    with pytest.raises(UsageError, match="at least one that is primary"): quick(here.folder.parent, cases={"parts": (here.folder.parent/"parts", "gaurd")})

def test_arms_that_do_not_exist_are_told_before_anything_is_measured(here):
    from mimirag.lab import Arm, evaluate
    for arm in (Arm(name="x", defaults=dict(lexikal=dict(title=1.0))), Arm(name="x", defaults=dict(lexical=dict(titel=1.0))), Arm(name="x", pipeline="luck")):
        with pytest.raises(UsageError, match="there is no"): quick(here.folder.parent, arm)
    with pytest.raises(UsageError, match="no pipeline 'luck'"): evaluate(here.folder.parent/"parts", pipeline="luck")

@pytest.mark.parametrize("gold", [dict(lines=[5, 3]), dict(lines=[0, 3]), dict(lines=[1, 10**9]), dict(quote=" "), dict(quote="x"*20_000), dict(page=0)])
def test_places_that_cannot_be_are_told(tmp_path, gold):
    from mimirag.lab import read_cases
    (tmp_path/"cases.jsonl").write_text(json.dumps(dict(id="c", question="When?", gold=[dict(source="docs", path="a.md", lines=[3, 3], quote="at 6.2 bar") | gold])))
    with pytest.raises(UsageError, match="line 1: gold.0"): read_cases(tmp_path/"cases.jsonl")

@pytest.mark.parametrize("path", ["../a.md", "/etc/passwd", "", "a\0.md", "gone.md"])
def test_a_place_that_is_nowhere_is_a_stale_case(tmp_path, path):
    from mimirag.lab import evaluate, read_case_set
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a.md").write_text("# Valve\n\nIt opens at 6.2 bar.\n")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
    places = [dict(source="docs", path=path, lines=[3, 3], quote="at 6.2 bar"), dict(source="docs", path="a.md", quote="at 6.2 bar")]
    (tmp_path/"cases.jsonl").write_text("".join(json.dumps(dict(id=f"c{number}", question="When does it open?", gold=[place]))+"\n" for number,place in enumerate(places)))
    found = evaluate(read_case_set(tmp_path/"cases.jsonl", tmp_path))
    assert len(found["stale"])==1 and found["metrics"]["hit@1"]==0.5
    assert found["metrics"]["span_recall@5"]==0.0 # of the first case; the second names no lines

def test_a_source_that_cannot_be_asked_makes_a_run_invalid(here):
    made,_ = planned(here)
    row = made.record.rows[0]
    part = lambda row, *sides: row.model_copy(update={side: getattr(row, side).model_copy(update=dict(outcome="degraded")) for side in sides})
    refused(here, doctored(here, made, rows=[part(row, "candidate"), *made.record.rows[1:]]), "1 queries could not search everything")
    refused(here, doctored(here, made, rows=[part(row, "baseline", "candidate") for row in made.record.rows]), "30 queries could not search everything")
    both = made.record.model_copy(update=dict(rows=[part(row, "baseline", "candidate"), *made.record.rows[1:]])) # a file that cannot be read is the same for both
    assert judge(both).decision=="promoted"

@pytest.mark.parametrize("arguments, words", [(["--candidate", "lexical.title=nan"], "is no setting"), (["--candidate", "=1"], "there is no default"), (["--pipeline", "luck"], "no pipeline 'luck'"), (["--candidate", "lexical.title=4", "--save", "nowhere/r.json"], "nothing can be written there"),
                                              (["--candidate", "lexical.title=4", "--metric", "span_recall@5"], "of the lines that cases name")])
def test_explorations_that_cannot_be_meant_are_told_in_a_line(here, arguments, words):
    done = subprocess.run([sys.executable, "-m", "mimirag", "lab", "compare", str(here.folder.parent/"parts"), *arguments], capture_output=True, text=True, cwd=here.folder)
    assert done.returncode==2 and words in done.stderr and done.stderr.count("\n")==1

def test_entries_that_lack_what_they_name_are_no_entries(here):
    planned(here)
    append(here, "ran", plan="title-weight")
    for arguments in (["promote", "title-weight"], ["report", "title-weight", "--out", str(here.folder/"x.html")], ["runs"], ["check"]):
        done = subprocess.run([sys.executable, "-m", "mimirag", "lab", *arguments, "--experiments", str(here.folder)], capture_output=True, text=True)
        assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2)

# Statistics change, decisions do not

def test_a_kept_record_is_judged_by_the_method_it_was_kept_with(here):
    "The first method depends on the order of the rows, which is why there is a second; its records depend on it still"
    made,_ = planned(here)
    old = read_record(next((ROOT/"experiments/results").glob("heavier-titles-????????.json")))
    assert made.record.method==2 and old.method is None and '"method"' not in old.to_json()
    def depends(record): return judge(record.model_copy(update=dict(rows=record.rows[::-1]))).primary!=judge(record).primary
    assert depends(old) and not depends(old.model_copy(update=dict(method=2)))

def test_no_one_goes_back_to_an_earlier_method(here):
    "Two methods are two tries; the one that held when a run was entered is the one it is judged by"
    made,_ = planned(here)
    old = made.record.model_copy(update=dict(method=None))
    for facts in (dict(), dict(method=2)):
        text = here.ledger.read_text()
        (here.results/f"{old.id}.json").write_text(old.to_json())
        append(here, "ran", plan=old.name, digest=old.plan_digest, record=old.id, record_digest=sha256(old.to_json().encode()), decision="promoted", **facts)
        assert any("are not those that held when it was entered" in problem for problem in check(here))
        here.ledger.write_text(text)

@pytest.mark.parametrize("name", ["heavier-titles", "shorter-passages", "fusion-by-coverage"])
def test_what_is_kept_comes_out_as_it_was_entered(name):
    from mimirag.lab.runs import replayed
    workspace = find_workspace(ROOT/"experiments")
    entry = next(entry for entry in read_ledger(workspace)[0] if entry["kind"]=="ran" and entry["plan"]==name)
    again = replayed(name, workspace)
    assert again.analysis.decision==entry["decision"] and again.record.id==entry["record"]

# Defaults that are words

@pytest.fixture
def worded(here, monkeypatch):
    "A default that names a pipeline, and a search that asks what it is"
    import mimirag.lab.plan as plan, mimirag.sources.defaults as shipping
    from mimirag.retrieve.knowledge import KnowledgeBase
    tables = shipping._frozen({**shipped(), "pipeline": dict(documents="lexical")})
    for module in (plan, shipping): monkeypatch.setattr(module, "shipped", lambda: tables)
    monkeypatch.setattr(plan, "PIPELINES", ("lexical", "titles"))
    plainly = KnowledgeBase.search
    def search(kb, *given, **named):
        with shipping.trying(lexical=dict(title=12.0, document=0.0) if shipping.defaults()["pipeline"]["documents"]=="titles" else {}): return plainly(kb, *given, **named)
    monkeypatch.setattr(KnowledgeBase, "search", search)
    here.defaults.write_text(here.defaults.read_text()+'[pipeline]\ndocuments = "lexical" # how they are searched\n')
    (here.plans/"searching.toml").write_text('name = "searching"\nintroduces = "Words, until something better is shown"\nvalues = {pipeline = {documents = "lexical"}}\n')
    (here.plans/"title-weight.toml").write_text(TITLES.replace("defaults = {lexical = {title = 12.0, document = 0.0}}", 'defaults = {pipeline = {documents = "titles"}}'))
    assert any("[pipeline] documents = lexical is in no entry" in problem for problem in check(here))
    introduce("searching", here)
    assert check(here)==[]
    return here

def test_a_default_that_is_a_word_is_introduced_compared_and_promoted(worded):
    made,_ = planned(worded)
    assert made.analysis.decision=="promoted" and made.record.defaults["candidate"]["pipeline"]=={"documents": "titles"}
    entry = promote("title-weight", worded)
    assert entry["changes"]=={"pipeline.documents": ["lexical", "titles"]} and 'documents = "titles" # how they are searched' in worded.defaults.read_text() and check(worded)==[]
    worded.defaults.write_text(worded.defaults.read_text().replace('"titles"', '"hybrid"'))
    assert any("[pipeline] documents is hybrid, but the ledger leads to titles" in problem for problem in check(worded))

def test_a_default_that_is_a_word_is_shown_in_reports(worded):
    from mimirag.lab.report import report_html
    from mimirag.lab.tracking import _differing
    made,_ = planned(worded)
    assert "lexical → titles" in re.sub("<[^>]*>", "", report_html(made.record, made.analysis)) and _differing(made.record)=={"change.pipeline.documents": "lexical → titles"}

@pytest.mark.parametrize("defaults, words", [('{pipeline = {documents = "luck"}}', "no pipeline 'luck'"), ("{pipeline = {documents = 3}}", "where a word is wanted"), ('{lexical = {title = "much"}}', "where a number is wanted"), ('{pipeline = {documents = ""}}', "a number or a word")])
def test_a_word_that_cannot_be_meant_is_told(worded, defaults, words):
    (worded.plans/"title-weight.toml").write_text(TITLES.replace("defaults = {lexical = {title = 12.0, document = 0.0}}", f"defaults = {defaults}"))
    with pytest.raises(UsageError, match=words): declare("title-weight", worded)

def test_a_setting_on_the_command_line_is_a_number_or_a_word():
    from mimirag.lab_commands import _overrides
    assert _overrides(("pipeline.documents = hybrid", "lexical.title=4"))=={"pipeline": {"documents": "hybrid"}, "lexical": {"title": 4.0}}
    for odd in ("lexical.title=", "lexical.title=inf", "title"):
        with pytest.raises(UsageError, match="is no setting"): _overrides((odd,))

# Arms with an embedding

MODEL = '{model = "hashed", batch = 8}'

def test_a_run_says_what_made_its_vectors(here):
    (here.plans/"title-weight.toml").write_text(TITLES.replace('{name = "as shipped"}', f'{{name = "as shipped", embedding = {MODEL}}}').replace('defaults = {lexical', f'embedding = {MODEL}, defaults = {{lexical'))
    made,place = planned(here)
    assert all(model.startswith("hashed (256 numbers, ") for model in made.record.sets["parts"].models.values()) and read_record(place).id==made.record.id
    promote("title-weight", here)
    assert check(here)==[]

def test_an_arm_that_lost_its_vectors_failed_and_was_not_measured_by_words_alone(here, monkeypatch):
    from mimirag.evidence.errors import SourceError
    from mimirag.index.embed import Hashed
    from mimirag.lab import Arm
    def gone(self, text): raise SourceError("the model has gone")
    if not shipped().get("hybrid", {}).get("share"): pytest.skip("words alone are searched by default")
    monkeypatch.setattr(Hashed, "query", gone)
    monkeypatch.setattr(Hashed, "passages", lambda self, texts: np.ones((len(texts), 256), np.float32))
    made = quick(here.folder.parent, Arm(name="by meaning", embedding=dict(model="hashed")))
    assert "30 failed in the candidate (SourceError: the model has gone)" in str(made) and "baseline" not in str(made).partition("failed in")[2]

def test_an_embedding_is_a_part_of_the_plan_and_no_default(here):
    (here.plans/"title-weight.toml").write_text(TITLES.replace('{name = "as shipped"}', f'{{name = "as shipped", embedding = {MODEL}}}').replace('defaults = {lexical', f'embedding = {MODEL}, defaults = {{lexical'))
    from mimirag.lab.plan import check_arms, read_plan
    plan,digest = read_plan(here.plans/"title-weight.toml")
    assert plan.baseline.embedding==plan.candidate.embedding==dict(model="hashed", batch=8) and digest!=sha256(TITLES.encode())
    check_arms(parse_plan(TITLES.replace('{name = "as shipped"}', f'{{name = "as shipped", embedding = {MODEL}}}').replace('defaults = {lexical = {title = 12.0, document = 0.0}}', 'embedding = {model = "other"}')))
    (here.plans/"title-weight.toml").write_text(TITLES)
    made,_ = planned(here)
    arms = dict(made.record.arms, candidate=made.record.arms["candidate"].model_copy(update=dict(embedding=dict(model="tiny"))))
    refused(here, doctored(here, made, arms=arms, plan=made.record.plan.model_copy(update=dict(candidate=arms["candidate"]))), "differ in the embedding")

def test_a_profile_is_built_with_the_embedding_of_an_arm(here, tmp_path):
    "Once for arms that bring the same, of a set or of cases, whose places stay where they are"
    from contextlib import ExitStack
    import mimirag.lab.arms as arms, mimirag.lab.eval as evaluating
    from mimirag.lab import Arm, read_case_set
    (tmp_path/"docs").mkdir()
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs" # here\n')
    (tmp_path/"docs/a.md").write_text("It opens at 6.2 bar.\n")
    (tmp_path/"cases.jsonl").write_text(json.dumps(dict(id="c", question="When?", gold=[dict(source="docs", path="a.md", quote="at 6.2 bar")]))+"\n")
    for wanted in (read_set(here.folder.parent/"parts"), read_case_set(tmp_path/"cases.jsonl", tmp_path)):
        with evaluating.built(wanted) as plain, evaluating.built(wanted, embedding=dict(model="hashed", batch=8)) as ready:
            assert plain.kb.profile.embedding is None and ready.report.vectors==ready.report.passages > 0 and ready.kb.search("it opens").scope.pipeline=="hybrid"
    with evaluating.built(wanted, embedding=dict(model="hashed", batch=8)) as ready: assert ready.kb.profile.embedding.batch==8 and ready.model.startswith("hashed (256 numbers") and not evaluating.stale_cases(ready)
    for other,times in ((8, 1), (4, 2)):
        with ExitStack() as stack:
            ready = arms._ready(wanted, {side: Arm(name=side, embedding=dict(model="hashed", batch=batch)) for side,batch in (("baseline", 8), ("candidate", other))}, stack, False)
            assert len({id(one) for one in ready.values()})==times and ready["baseline"].report.added > 0
            assert times==1 or ready["candidate"].report.added==0 and ready["candidate"].kb.profile.embedding.batch==4 and len(ready["candidate"].kb.search("it opens"))
