"""Look at the kept comparisons in MLflow: fill a store from `experiments/results`, and open the UI on this machine only.

    python tools/mlflow_ui.py [--port 5000] [--only-log]

The store, `experiments/mlflow/`, is made from the records and not committed; delete it at any time.
"""
import argparse, os, socket, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

def fill(experiments: Path, store: Path) -> str:
    "Log every kept record; one that cannot be read is told, and passed over. The id of MLflow's experiment"
    from mimirag.evidence.errors import MimiRAGError
    from mimirag.lab.ledger import Workspace
    from mimirag.lab.runs import open_run
    from mimirag.lab.tracking import log_record, open_store
    workspace,logged,experiment = Workspace(experiments, ROOT/"mimirag/defaults.toml"), 0, ""
    client = open_store(store)
    for path in sorted(path for path in workspace.results.glob("*.json") if not path.name.endswith(".evidence.json")):
        try:
            record,_,evidence = open_run(path, workspace)
            experiment = client.get_run(log_record(record, store, evidence)).info.experiment_id
            logged += 1
        except MimiRAGError as error: print(f"passed over: {error}", file=sys.stderr)
    print(f"{logged} comparison{'' if logged==1 else 's'} in {store}", flush=True)
    return experiment

def serve(store: Path, port: int, experiment: str) -> int:
    "MLflow's UI on 127.0.0.1 until it is ended; nothing is reported to anybody, and nothing can be uploaded"
    from mimirag.lab.tracking import store_address
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port))==0:
            print(f"port {port} is taken; run: make mlflow PORT={port+1}", file=sys.stderr)
            return 2
    print(f"http://127.0.0.1:{port}/#/experiments/{experiment}/runs?workflowType=machine_learning (ready in a few seconds; Ctrl-C ends it)" if experiment else f"http://127.0.0.1:{port}", flush=True)
    environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store_address(store), "--default-artifact-root", (store/"artifacts").as_uri(), "--no-serve-artifacts",
               "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    try: return subprocess.call(command, cwd=store, env=environment)
    except KeyboardInterrupt: return 0

def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--port", type=int, default=5000)
    options.add_argument("--only-log", action="store_true", help="fill the store and stop")
    options.add_argument("--experiments", type=Path, default=ROOT/"experiments")
    given = options.parse_args()
    store = given.experiments.resolve()/"mlflow"
    experiment = fill(given.experiments, store)
    return 0 if given.only_log else serve(store, given.port, experiment)

if __name__=="__main__": sys.exit(main())
