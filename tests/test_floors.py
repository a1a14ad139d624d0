"The floors hold, and the check that says so can fail"
import subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

def test_a_broken_floor_is_found(tmp_path):
    import shutil
    shutil.copytree(ROOT/"mimirag", tmp_path/"mimirag", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT/"pyproject.toml", tmp_path)
    lint = lambda: subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"], cwd=tmp_path, capture_output=True, text=True)
    assert lint().returncode==0, lint().stdout
    module = tmp_path/"mimirag/evidence/text.py"
    module.write_text(module.read_text()+"\ndef up():\n    from mimirag.retrieve import search\n")
    broken = lint()
    assert broken.returncode==1 and "mimirag.evidence" in broken.stdout
