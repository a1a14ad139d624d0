"MLflow as a view of the records: a store that can be moved, makes nothing elsewhere, and needs no network"
import json, os, shutil, sqlite3, subprocess, sys
from pathlib import Path
import pytest
pytest.importorskip("mlflow")
from mimirag.evidence.errors import UsageError
from mimirag.lab import tracking
from mimirag.lab.tracking import log_record, open_store, runs
from test_report import HOSTILE, evidence_of, made

ROOT = Path(__file__).resolve().parents[1]
LOG = """
import json, sys
from pathlib import Path
from mimirag.lab import Arm, compare
from mimirag.lab.tracking import log_record, open_store, runs
action,store = sys.argv[1:3]
if action=="log":
    made = compare(Arm(name="as shipped"), Arm(name="titles count for nothing", defaults=dict(lexical=dict(title=0.0))), sys.argv[3])
    print(json.dumps([log_record(made.record, store, made.evidence), log_record(made.record, store), made.record.digest]))
else:
    client,found = open_store(store), runs(store)
    print(json.dumps([found, Path(client.download_artifacts(found[0]["run"], "record.json", sys.argv[3])).read_text(), [artifact.path for artifact in client.list_artifacts(found[0]["run"])]]))
"""

@pytest.fixture
def parts(tmp_path):
    names = [f"{part} {number}" for part in "pump valve flap gate rack basin".split() for number in ("alpha", "beta", "gamma")]
    (tmp_path/"parts").mkdir()
    (tmp_path/"parts/corpus.jsonl").write_text("\n".join(json.dumps(dict(id=name, title=f"The {name}", text=f"The {names[(number+1) % 18]} is nearby.")) for number,name in enumerate(names)))
    (tmp_path/"parts/queries.jsonl").write_text("\n".join(json.dumps(dict(id=name, text=f"Where is the {name}?")) for name in names))
    (tmp_path/"parts/qrels.tsv").write_text("\n".join(f"{name}\t{name}\t1" for name in names)+"\n")
    return tmp_path/"parts"

def python(folder: Path, *arguments) -> str:
    "Run the script in a folder, in an environment that would betray anything left to MLflow's defaults"
    folder.mkdir(exist_ok=True)
    environment = {name: value for name,value in os.environ.items() if not name.startswith("MLFLOW_")} | dict(MLFLOW_TRACKING_URI="http://127.0.0.1:9")
    done = subprocess.run([sys.executable, "-c", LOG, *map(str, arguments)], cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode==0, done.stderr
    return json.loads(done.stdout)

def test_a_store_survives_a_move_and_nothing_is_made_elsewhere(tmp_path, parts):
    first,again,digest = python(tmp_path/"somewhere", "log", tmp_path/"A/store", parts)
    assert first==again
    shutil.move(tmp_path/"A", tmp_path/"B")
    (tmp_path/"out").mkdir()
    found,record,artifacts = python(tmp_path/"elsewhere", "read", tmp_path/"B/store", tmp_path/"out")
    assert [run["run"] for run in found]==[first] and {"record.json", "report.html", "queries.json"} <= set(artifacts)
    from mimirag.lab.record import Record
    assert Record.model_validate_json(record).digest==digest
    assert not list((tmp_path/"somewhere").iterdir()) and not list((tmp_path/"elsewhere").iterdir()) and not (tmp_path/"A").exists()
    assert sorted(path.name for path in (tmp_path/"B/store").iterdir())==["artifacts", "mlflow.db"]

def test_a_copied_store_answers_from_its_own_place(tmp_path):
    log_record(made(9), tmp_path/"A")
    shutil.copytree(tmp_path/"A", tmp_path/"A copy")
    shutil.rmtree(tmp_path/"A/artifacts")
    (tmp_path/"out").mkdir()
    assert python(tmp_path/"x", "read", tmp_path/"A copy", tmp_path/"out")[0]

def test_this_projects_own_reader_of_mlflow_reads_it(tmp_path):
    import mimirag
    run = log_record(made(9), tmp_path/"store")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "runs"\nkind = "records"\nstore = "mlflow"\npath = "store/mlflow.db"\n')
    reply = mimirag.open(tmp_path).search(made(9).arms["candidate"].name)
    assert reply.outcome=="found" and run in {item.path for item in reply} | {line for item in reply for line in item.text.split()}

def test_what_is_no_store_is_told(tmp_path):
    (tmp_path/"mlflow.db").write_bytes(b"SQLite format 3\0"+b"x"*200)
    with pytest.raises(UsageError, match="not a store of MLflow"): open_store(tmp_path)
    (tmp_path/"other").mkdir()
    with sqlite3.connect(tmp_path/"other/mlflow.db") as other: other.execute("CREATE TABLE mine(x)")
    with pytest.raises(UsageError, match="not a store of MLflow"): open_store(tmp_path/"other")
    (tmp_path/"file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"): open_store(tmp_path/"file")
    with pytest.raises(UsageError, match="there is no store here"): runs(tmp_path/"nothing")
    assert not (tmp_path/"nothing").exists()

@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    "A store with one comparison; it is copied, never used"
    log_record(made(9), folder := tmp_path_factory.mktemp("kept")/"store")
    return folder

@pytest.fixture
def store(kept, tmp_path): return Path(shutil.copytree(kept, tmp_path/"store"))

@pytest.mark.parametrize("name", ["50 %", "a#b;c=d&e", "пример", "it's"])
def test_odd_names_of_folders(store, name):
    store = store.rename(store.with_name(name))
    run,other = runs(store)[0]["run"], log_record(made(1), store)
    store = store.rename(store.with_name(f"moved {name}"))
    for id,record in ((run, made(9)), (other, made(1))): assert Path(open_store(store).download_artifacts(id, "record.json")).read_text()==record.to_json()
    assert [path.name for path in store.parent.iterdir()]==[f"moved {name}"]

@pytest.mark.parametrize("name", ["which?", "a%20b"])
def test_a_path_that_mlflow_misreads_is_refused_and_nothing_is_made(tmp_path, name):
    with pytest.raises(UsageError, match="name another folder"): log_record(made(9), tmp_path/name)
    assert not list(tmp_path.iterdir())

ONE = "import sys; from pathlib import Path; from mimirag.lab.record import read_record; from mimirag.lab.tracking import log_record; print(log_record(read_record(sys.argv[1]), sys.argv[2]))"

def test_processes_at_once_make_one_store(tmp_path):
    for seed in (1, 2): (tmp_path/f"{seed}.json").write_text(made(1, seed=seed).to_json())
    started = [subprocess.Popen([sys.executable, "-c", ONE, str(tmp_path/f"{seed}.json"), str(tmp_path/"store")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for seed in (1, 1, 2)]
    said = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started]==[0]*3, said
    assert said[0][0]==said[1][0]!=said[2][0] and len(runs(tmp_path/"store"))==2 and not any(error for _,error in said)

def test_what_was_interrupted_is_logged_anew(tmp_path, monkeypatch):
    def stop(*arguments): raise KeyboardInterrupt
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(tracking, "_log_files", stop)
        log_record(made(9), tmp_path)
    assert runs(tmp_path)==[]
    run = log_record(made(9), tmp_path)
    client = open_store(tmp_path)
    assert [row["run"] for row in runs(tmp_path)]==[run] and len(client.search_runs([client.get_run(run).info.experiment_id]))==3

def test_texts_that_come_later_are_shown(kept, store):
    record,page = made(9), lambda run, store=store: Path(open_store(store).download_artifacts(run, "report.html")).read_text()
    run = runs(store)[0]["run"]
    assert "sesame" not in page(run)
    assert log_record(record, store, evidence_of(record, "sesame"))==run and "sesame" in page(run)
    assert log_record(record, store)==run and "sesame" in page(run)
    assert "sesame" not in page(run, kept) and "sesame" in page(run) # what is a copy stays one

def test_what_people_do_in_the_browser(store):
    run,client = runs(store)[0]["run"], open_store(store)
    experiment = client.get_run(run).info.experiment_id
    client.rename_experiment(experiment, "ours")
    store = store.rename(store.with_name("moved"))
    assert [row["run"] for row in runs(store)]==[run]
    client = open_store(store)
    assert client.list_artifacts(run) and log_record(made(9), store)==run
    client.delete_experiment(experiment)
    assert log_record(made(9), store)==run
    client.delete_run(run)
    assert log_record(made(9), store)!=run and len(runs(store))==1

def test_a_store_that_has_not_moved_is_not_written_to(store):
    run = runs(store)[0]["run"] # was copied, so it is repaired here
    before = (store/"mlflow.db").read_bytes()
    assert runs(store)[0]["run"]==run and open_store(store).list_artifacts(run) and (store/"mlflow.db").read_bytes()==before

def test_a_store_in_use_is_told(store, monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", lambda path, connect=sqlite3.connect: connect(path, timeout=.1))
    other = sqlite3.connect(store/"mlflow.db")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UsageError, match="in use or protected"): log_record(made(10), store)
    other.close()

@pytest.mark.parametrize("version", ["0123456789ab", "cc1f77228345"])
def test_a_database_of_another_mlflow_is_told(store, version): # a folder of its own each time, since MLflow checks a database once
    with sqlite3.connect(store/"mlflow.db") as other: other.execute("UPDATE alembic_version SET version_num=?", (version,))
    with pytest.raises(UsageError, match="nothing is lost"): log_record(made(9), store)

KINDS = dict(none=made(0), one=made(1), exploration=made(9, plan=None, plan_digest=None, declared=None), no_times=made(9, started="yesterday", finished="0001-01-01T00:00:00"), hostile=made(9, name=HOSTILE), japanese=made(9, name="ポンプ"),
             long=made(1).model_copy(update=dict(name="a'b`c\n"*200)), large=made(3_000))

@pytest.mark.parametrize("kind", KINDS)
def test_records_of_every_kind(store, kind):
    record,before = KINDS[kind], runs(store)[0]["run"]
    run = log_record(record, store)
    assert log_record(record, store)==run and sorted(row["run"] for row in runs(store))==sorted([before, run])
    assert Path(open_store(store).download_artifacts(run, "record.json")).read_bytes()==record.to_json().encode()

def test_a_description_fetches_nothing(store):
    record = made(1)
    record = record.model_copy(update=dict(plan=record.plan.model_copy(update=dict(question="![seen](http://example.org/a.png) <img src=x> `code` **"))))
    note = open_store(store).get_run(log_record(record, store)).data.tags["mlflow.note.content"]
    assert r"\!\[seen\]" in note and r"\<img" in note and r"\`code\`" in note and "![" not in note

def test_guards_changes_and_decision_can_be_read(store):
    data = open_store(store).get_run(log_record(made(), store)).data
    assert data.tags["mimirag.decision"]=="inconclusive" and data.tags["mimirag.guards"].count(" held")==2
    assert data.params["change.lexical.title"]=="2.5 → 4" and {"guard.recall_at_10.low", "guard.latency.ratio", "nDCG_at_10.candidate", "nDCG_at_10.p"} <= data.metrics.keys() and not any("@" in name for name in data.metrics)

def test_the_command_fills_a_store_and_passes_over_what_is_no_record(tmp_path):
    (tmp_path/"results").mkdir()
    (tmp_path/"results/good.json").write_text(made(9).to_json())
    (tmp_path/"results/bad.json").write_text("{}")
    done = subprocess.run([sys.executable, str(ROOT/"tools/mlflow_ui.py"), "--only-log", "--experiments", str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode==0 and done.stdout.startswith("1 comparison in ") and "passed over" in done.stderr and "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir())==["mlflow", "results"] and len(runs(tmp_path/"mlflow"))==1
