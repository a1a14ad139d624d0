"What the package carries, and how it is put together"
import ast, json, re, subprocess, sys
from configparser import ConfigParser
from pathlib import Path
import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[1]

def test_schemas_are_the_models():
    sys.path.insert(0, str(ROOT/"tools"))
    from schemas import schemas
    made = schemas()
    for name,text in made.items():
        Draft202012Validator.check_schema(json.loads(text))
        assert (ROOT/"mimirag/schemas"/name).read_text("utf-8")==text

def test_no_undefined_or_unused_names():
    done = subprocess.run([sys.executable, "-m", "pyflakes", "mimirag", "tools", "tests", "fixtures"], cwd=ROOT, capture_output=True, text=True)
    assert not [line for line in done.stdout.split("\n") if line and "mimirag/__init__.py" not in line], done.stdout

OF_VECTORS = {"embed.py": {"torch", "transformers", "httpx2"}, "quick.py": {"torch", "transformers"}, "rerank.py": {"torch", "transformers"}} # a model in a folder, or the endpoint that a profile names

def test_the_core_has_no_client_of_a_language_model_and_no_framework():
    "Floors up to retrieve import nothing that talks to a language model or to a network, but what makes vectors where a profile asks for them"
    forbidden = {"openai", "anthropic", "langchain", "llama_index", "transformers", "torch", "requests", "httpx", "httpx2", "aiohttp", "urllib.request", "http.client", "socket"}
    for floor in ("evidence", "sources", "extract", "index", "retrieve"):
        for path in (ROOT/"mimirag"/floor).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not (forbidden-OF_VECTORS.get(path.name, set())) & {*names, *(name.split(".")[0] for name in names)}, path

def test_versions_agree():
    settings = ConfigParser(delimiters=["="])
    settings.read(ROOT/"settings.ini", "utf-8")
    import mimirag
    assert settings["DEFAULT"]["version"]==mimirag.__version__

def test_public_names():
    import mimirag
    for name in mimirag.__all__: assert getattr(mimirag, name)
    with pytest.raises(AttributeError): mimirag.nonsense
    assert callable(mimirag.open) and mimirag.Citation.__name__=="Citation"

def test_no_path_of_one_machine():
    pattern = re.compile(r"(?<![\w.])/(?:work|home|root|Users)/\w+")
    for path in [*ROOT.glob("*"), *(ROOT/"mimirag").rglob("*"), *(ROOT/"nbs").rglob("*.ipynb"), *(ROOT/"tools").glob("*"), *(ROOT/"experiments").rglob("*"), *(ROOT/"fixtures").rglob("*")]:
        if path.is_file() and path.suffix in (".py", ".md", ".ipynb", ".toml", ".ini", ".json", "") and ".git" not in path.parts: assert not pattern.search(path.read_text("utf-8", errors="replace")), path
