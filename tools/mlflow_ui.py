"""Look at the kept comparisons in MLflow: fill a store from `experiments/results`, and open the UI on this machine only.

    python tools/mlflow_ui.py [--port 5000] [--only-log]

The store, `experiments/mlflow/`, is made from the records and not committed; delete it at any time.
"""
import argparse, os, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=5000)
    options.add_argument("--only-log", action="store_true", help="fill the store and stop")
    options.add_argument("--experiments", type=Path, default=ROOT/"experiments")
    given = options.parse_args()
    from mimirag.lab.ledger import Workspace
    from mimirag.lab.runs import open_run
    from mimirag.lab.tracking import log_record, open_store
    workspace,store = Workspace(given.experiments, ROOT/"mimirag/defaults.toml"), given.experiments/"mlflow"
    records = sorted(path for path in workspace.results.glob("*.json") if not path.name.endswith(".evidence.json"))
    open_store(store)
    for path in records:
        record,_,evidence = open_run(path, workspace)
        log_record(record, store, evidence)
    print(f"{len(records)} comparisons in {store}", flush=True)
    if given.only_log: return
    print(f"http://127.0.0.1:{given.port} (Ctrl-C ends it)", flush=True)
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    sys.exit(subprocess.call([sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{store.resolve()/'mlflow.db'}", "--default-artifact-root", (store.resolve()/"artifacts").as_uri(),
                              "--host", "127.0.0.1", "--port", str(given.port), "--workers", "1"], cwd=store, env=environment))

if __name__=="__main__": main()
