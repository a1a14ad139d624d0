"MLflow as a view of the records: a store that can be moved, makes nothing elsewhere, and needs no network"
import json, os, shutil, subprocess, sys
from pathlib import Path
import pytest
pytest.importorskip("mlflow")
from mimirag.evidence.errors import UsageError

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
    environment = {name: value for name,value in os.environ.items() if not name.startswith("MLFLOW_")}
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

def test_a_copied_store_answers_from_its_own_place(tmp_path, parts):
    python(tmp_path/"x", "log", tmp_path/"A", parts)
    shutil.copytree(tmp_path/"A", tmp_path/"A copy")
    shutil.rmtree(tmp_path/"A/artifacts")
    (tmp_path/"out").mkdir()
    assert python(tmp_path/"x", "read", tmp_path/"A copy", tmp_path/"out")[0]

def test_this_projects_own_reader_of_mlflow_reads_it(tmp_path, parts):
    run,_,_ = python(tmp_path/"x", "log", tmp_path/"store", parts)
    import mimirag
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "runs"\nkind = "records"\nstore = "mlflow"\npath = "store/mlflow.db"\n')
    reply = mimirag.open(tmp_path).search("titles count for nothing")
    assert reply.outcome=="found" and run in {item.path for item in reply} | {line for item in reply for line in item.text.split()}

def test_what_is_no_store_is_told(tmp_path):
    from mimirag.lab.tracking import open_store
    (tmp_path/"mlflow.db").write_bytes(b"SQLite format 3\0"+b"x"*200)
    with pytest.raises(UsageError, match="not a store of MLflow"): open_store(tmp_path)
    import sqlite3
    (tmp_path/"other").mkdir()
    with sqlite3.connect(tmp_path/"other/mlflow.db") as made: made.execute("CREATE TABLE mine(x)")
    with pytest.raises(UsageError, match="not a store of MLflow"): open_store(tmp_path/"other")
