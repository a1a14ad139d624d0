"The command line as people and scripts use it, in processes of their own"
import json, os, re, subprocess, sys
from pathlib import Path
import pytest
from jsonschema import Draft202012Validator
from mimirag.cli import cli

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT/"mimirag/schemas").glob("*.json")}

def mimirag(*arguments, cwd=None, stdin=None, **more):
    return subprocess.run([sys.executable, "-m", "mimirag", *arguments], capture_output=True, text=True, cwd=cwd, input=stdin, encoding="utf-8", **more)

@pytest.fixture
def home(kb_of):
    kb = kb_of({"valve.md": "# Relief valve\n\nIt opens at 6.2 bar.\n", "seat.html": "<title>Seat</title><p>Replaced every two years.", "empty.txt": ""}, more='url = "https://example.org/{path}"')
    return kb.profile.file.parent

def valid(value, name: str): Draft202012Validator(SCHEMAS[name]).validate(value)

def cpu(code: str) -> float:
    "CPU seconds of a Python process, the least of three"
    import resource
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime+after.ru_stime-before.ru_utime-before.ru_stime)
    return min(seconds)

def test_starting_is_light():
    heavy = ["torch", "pandas", "mlflow", "pymupdf", "mcp", "numpy", "rich", "docutils", "pydantic", "apsw"]
    code = "import sys\nfrom contextlib import suppress\nimport mimirag\nfrom mimirag.cli import main\nwith suppress(SystemExit): main(['--help'])\nprint('HEAVY', [name for name in %r if name in sys.modules])" % heavy
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("HEAVY []") and "Usage" in done.stdout
    assert cpu("from mimirag.cli import main; main(['--help'])") <= 0.3

def test_searching_loads_no_more_than_it_needs(home):
    code = f"import sys\nfrom contextlib import suppress\nfrom mimirag.cli import main\nwith suppress(SystemExit): main(['search', 'valve', '-p', {str(home)!r}])\nprint('HEAVY', [name for name in ['torch', 'pandas', 'mlflow', 'pymupdf', 'mcp', 'docutils'] if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip().endswith("HEAVY []")

def test_every_command_is_in_the_readme():
    readme = (ROOT/"README.md").read_text("utf-8")
    names = [name if not hasattr(command, "commands") else f"{name} {inner}" for name,command in cli.commands.items() for inner in (getattr(command, "commands", None) or [""])]
    missing = [name for name in names if f"mimirag {name}".strip() not in readme]
    assert not missing

def test_json_validates(home):
    valid(json.loads(mimirag("index", "--json", cwd=home).stdout), "buildreport")
    reply = json.loads(mimirag("search", "relief valve", "--json", cwd=home).stdout)
    valid(reply, "reply")
    item = reply["items"][0]
    valid(item, "evidence")
    for verdict in json.loads(mimirag("resolve", item["id"], item["citation"], "nonsense", "--json", cwd=home).stdout): valid(verdict, "verdict")
    valid(json.loads(mimirag("show", item["id"], "--json", cwd=home).stdout), "reading")
    status = json.loads(mimirag("status", "--json", cwd=home).stdout)
    assert status.pop("unreadable")[0]["path"]=="empty.txt"
    valid(status, "status")
    for finding in json.loads(mimirag("doctor", "--json", cwd=home).stdout): valid(finding, "finding")
    assert json.loads(mimirag("init", "--json", "--force", cwd=home/"docs").stdout)["sources"]==["docs"]

def test_exit_codes(home):
    item = json.loads(mimirag("search", "valve", "--json", cwd=home).stdout)["items"][0]
    for arguments,code in [(["search", "valve"], 0), (["search", "walrus"], 1), (["resolve", item["id"]], 0), (["resolve", "nonsense"], 1), (["show", item["id"]], 0), (["show", "nonsense"], 2), (["status"], 0), (["doctor"], 0),
                           (["nonsense"], 2), (["search"], 2), (["search", "x", "--limit", "0"], 2), (["search", "x", "--nonsense"], 2), (["search", "x", "-p", "none.toml"], 3), (["verify", "none.md"], 2), (["--version"], 0), (["cite"], 2), ([], 0), (["lab"], 0), (["resolve", "-"], 2), (["show", item["id"], "--image", "none/x.png"], 2), (["completion", "tcsh"], 2)]:
        done = mimirag(*arguments, cwd=home, stdin="")
        assert done.returncode==code, (arguments, done)
        assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 1, (arguments, done.stderr)
        if code > 1: assert done.stderr.startswith("mimirag") and ("--image" in arguments or not done.stdout), arguments

@pytest.mark.parametrize("arguments,says", [(["serach", "x"], "search"), (["search", "x", "--limti", "3"], "--limit"), (["search", "x", "--limit", "many"], "many")])
def test_mistakes_say_what_was_meant(home, arguments, says):
    done = mimirag(*arguments, cwd=home)
    assert done.returncode==2 and says in done.stderr and done.stderr.count("\n")==1

def test_broken_profiles(tmp_path):
    for text,says in [("", "[source] is missing"), ("[[source]]\nid = 'd'\nkind = 'documents'\n", '"root" is missing'), ("[[source]\n", "not TOML"), ("\xff", "not UTF-8")]:
        (tmp_path/"mimirag.toml").write_bytes(text.encode("latin-1"))
        done = mimirag("search", "x", cwd=tmp_path)
        assert done.returncode==3 and says in done.stderr and "mimirag.toml" in done.stderr and done.stderr.count("\n")==1, done.stderr

def test_nothing_acts_on_the_terminal(kb_of):
    "Text of documents cannot move the cursor, colour, or turn the direction of writing"
    home = kb_of({"evil\x1b[31m.md": "# T\x1b]0;owned\x07\n\nvalve \x1b[2J\u202eevil\u2066 \x9b31m\n"}).profile.file.parent
    for arguments in (["search", "valve"], ["search", "valve", "--full"], ["index"], ["status", "--unreadable"]):
        out = mimirag(*arguments, cwd=home)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out.stdout+out.stderr), arguments
    item = json.loads(mimirag("search", "valve", "--json", cwd=home).stdout)["items"][0]
    assert "\x1b[2J\u202e" in item["text"], "JSON keeps the exact string"
    shown = mimirag("show", item["id"], cwd=home).stdout
    assert "\\x1b[2J\\u202e" in shown and "\x1b" not in shown

def test_colours_on_terminals_only(home):
    import pty
    parent,child = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "mimirag", "search", "valve"], stdout=child, stderr=child, stdin=child, cwd=home, env={k: v for k,v in os.environ.items() if k not in ("NO_COLOR", "TERM")} | dict(TERM="xterm"))
    os.close(child)
    data = b""
    try:
        while chunk := os.read(parent, 4096): data += chunk
    except OSError: pass
    process.wait()
    assert b"\x1b[" in data and "\x1b[" not in mimirag("search", "valve", cwd=home).stdout

def test_output_does_not_depend_on_the_locale(kb_of):
    home = kb_of({"a.md": "# Prüfung\n\n検査 valve\n"}).profile.file.parent
    outputs = {mimirag("search", "valve", cwd=home, env=dict(os.environ, LC_ALL=locale, PYTHONIOENCODING="", PYTHONUTF8="0")).stdout for locale in ("C", "C.UTF-8")}
    assert len(outputs)==1 and "検査" in outputs.pop()

def test_verify_in_ci(home):
    item = json.loads(mimirag("search", "valve", "--json", cwd=home).stdout)["items"][0]
    (home/"report.md").write_text(f"Opens at 6.2 bar [{item['id']}].\n")
    (home/"report.ipynb").write_text(json.dumps(dict(nbformat=4, nbformat_minor=5, metadata={}, cells=[dict(cell_type="markdown", metadata={}, source=[f"See {item['citation']}"])])))
    assert mimirag("verify", "report.md", "report.ipynb", cwd=home).returncode==0
    assert "1 in its footer" in mimirag("cite", "--footer", "report.md", cwd=home).stdout
    (home/"mimirag.sqlite").unlink()
    done = mimirag("verify", "report.md", "report.ipynb", cwd=home)
    assert done.returncode==0 and "2 citations in 2 documents: 2 hold" in done.stdout, done.stdout
    (home/"docs/valve.md").write_text("intro\n\n# Relief valve\n\nIt opens at 6.2 bar.\n")
    assert mimirag("verify", "report.md", cwd=home).returncode==1 and mimirag("verify", "report.md", "--allow-superseded", cwd=home).returncode==0
    (home/"docs/valve.md").write_text("# Relief valve\n\nIt opens at 6.3 bar.\n")
    found = json.loads(mimirag("verify", "report.md", "--json", "--allow-superseded", cwd=home).stdout)
    assert [(verdict["currency"], verdict["accepted"]) for verdict in found["report.md"]]==[("superseded_changed", False)]

def test_other_forms(home):
    item = json.loads(mimirag("search", "valve", "--json", cwd=home).stdout)["items"][0]
    assert mimirag("cite", item["id"], cwd=home).stdout.strip()==item["citation"]
    assert mimirag("cite", item["citation"], "--format", "id", cwd=home).stdout.strip()==item["id"]
    assert mimirag("cite", item["id"], "--format", "url", cwd=home).stdout.strip()=="https://example.org/valve.md"
    annotation = json.loads(mimirag("cite", item["id"], "--format", "w3c", cwd=home).stdout)
    exact,position = annotation["target"]["selector"]
    text = (home/"docs/valve.md").read_text()
    assert text[position["start"]:position["end"]]==exact["exact"]==item["text"]
    assert "\n".join(mimirag("resolve", "-", cwd=home, stdin=f"{item['citation']}\n\n{item['id']}\n").stdout.split("\n")).count("verified")==2

def test_a_page_as_a_picture(home):
    pytest.importorskip("pymupdf")
    from pdf_writer import Pdf, show
    pdf = Pdf()
    pdf.page(show(72, 700, "The plover sheet."))
    (home/"docs/sheet.pdf").write_bytes(pdf.build())
    mimirag("index", cwd=home)
    item = json.loads(mimirag("search", "plover", "--json", cwd=home).stdout)["items"][0]
    assert mimirag("show", item["id"], "--image", "page.png", cwd=home).returncode==0 and (home/"page.png").read_bytes().startswith(b"\x89PNG")
    assert mimirag("show", json.loads(mimirag("search", "relief", "--json", cwd=home).stdout)["items"][0]["id"], "--image", "no.png", cwd=home).returncode==2

def test_init_writes_what_works(tmp_path):
    (tmp_path/"a.md").write_text("the plover rule\n")
    assert mimirag("init", cwd=tmp_path).returncode==0 and mimirag("index", cwd=tmp_path).returncode==0
    assert mimirag("search", "plover", cwd=tmp_path).returncode==0
    assert mimirag("init", cwd=tmp_path).returncode==2 and "--force" in mimirag("init", cwd=tmp_path).stderr
    assert "_MIMIRAG_COMPLETE" in mimirag("completion", "bash").stdout

def test_a_script_without_a_main_guard(tmp_path):
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a.md").write_text("the plover rule\n")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "d"\nkind = "documents"\nroot = "docs"\n')
    (tmp_path/"re.py").write_text("raise SystemExit('a module of the current folder was imported')\n")
    (tmp_path/"script.py").write_text("import sys; sys.path.pop(0)\nimport mimirag\nkb = mimirag.open()\nprint(kb.build(progress=True).documents)\nreply = kb.search('plover')\nprint(reply.outcome, kb.resolve(reply.items[0].citation).integrity, mimirag.Citation.parse(str(reply[0].citation)).id==reply[0].id)\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split()==["1", "found", "verified", "True"] and not done.stderr, done.stderr
