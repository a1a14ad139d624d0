"Run by tools/check with the wheel installed alone, without extras and far from the checkout: the whole path must work"
import json, os, subprocess, sys, tempfile
from pathlib import Path

said = [] # on standard error

def mimirag(*arguments, expect=0):
    done = subprocess.run([str(Path(sys.executable).with_name("mimirag")), *arguments], capture_output=True, text=True)
    assert done.returncode==expect, (arguments, done.returncode, done.stdout, done.stderr)
    said.append(done.stderr)
    return done.stdout

import mimirag as package
assert "site-packages" in package.__file__, package.__file__
assert (Path(package.__file__).parent/"schemas/citation.json").is_file() and (Path(package.__file__).parent/"defaults.toml").is_file()
with tempfile.TemporaryDirectory() as home:
    os.chdir(home)
    Path("valve.md").write_text("# Relief valve\n\nIt opens at 6.2 bar.\n")
    Path("page.html").write_text("<title>Seat</title><p>Replaced every two years.")
    Path("sheet.pdf").write_bytes(b"%PDF-1.7\n")
    mimirag("init")
    assert 'mimirag[pdf]' in mimirag("index"), "a PDF without the extra is listed with what to install"
    found = json.loads(mimirag("search", "relief", "valve", "--json"))["items"][0]
    assert "verified · current" in mimirag("resolve", found["id"])
    mimirag("doctor")
    assert "exact" in mimirag("quote", "It opens at 6.2 bar.")
    assert mimirag("mcp", expect=3)=="" and 'pip install "mimirag[mcp]"' in said[-1], "the server without the extra says what to install, and nothing on standard output"
    assert "--profile" in mimirag("mcp", "--print-config", "cursor")
print("the wheel works alone")
