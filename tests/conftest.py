import os, sys
from pathlib import Path
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT/"fixtures")) # the PDF writer

settings.register_profile("checks", deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True, print_blob=True)
settings.load_profile("checks")

@pytest.fixture
def kb_of(tmp_path):
    "A function: files (path → text or bytes) to a built knowledge base"
    from mimirag.retrieve.knowledge import KnowledgeBase
    opened = []
    def make(files: dict, more: str = "", build: bool = True, folder: Path = tmp_path/"home"):
        for name,content in files.items():
            path = folder/"docs"/name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (folder/"docs").mkdir(parents=True, exist_ok=True)
        (folder/"mimirag.toml").write_text(f'[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n{more}\n')
        kb = KnowledgeBase(folder)
        opened.append(kb)
        if build: kb.report = kb.build(workers=1)
        return kb
    yield make
    for kb in opened: kb.close()

@pytest.fixture(scope="session")
def sets() -> Path:
    "The folder with the public evaluation sets"
    folder = os.environ.get("MIMIRAG_DATA")
    if not folder or not Path(folder).is_dir(): pytest.skip("MIMIRAG_DATA names no folder with the public evaluation sets")
    return Path(folder)
