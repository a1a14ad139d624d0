"""The whole idea in half a minute: index a few documents, ask, check the citation, change one byte, check again.

Runs the `mimirag` command itself, on a copy of the example documents in a temporary folder. No model, no network.
"""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIMIRAG = [sys.executable, "-m", "mimirag"]
QUESTION = "At how many bar does the relief valve open?"

def say(text: str): print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)

def run(*arguments: str, expect: int = 0, shown: str = ""):
    "Show a command, run it, and make sure that it answers as it should"
    print(f"$ mimirag {shown or ' '.join(f'{chr(34)}{part}{chr(34)}' if ' ' in part else part for part in arguments)}", flush=True)
    done = subprocess.run([*MIMIRAG, *arguments])
    if done.returncode!=expect: sys.exit(f"expected exit code {expect}, got {done.returncode}")

def answer(*arguments: str): return json.loads(subprocess.run([*MIMIRAG, *arguments, "--json"], capture_output=True, check=True, text=True, encoding="utf-8").stdout)

def main():
    with tempfile.TemporaryDirectory(prefix="mimirag-demo-") as home:
        shutil.copytree(ROOT/"fixtures/docs", Path(home)/"marram")
        os.chdir(Path(home)/"marram")
        say("1. Point it at a folder of documents: Markdown, reStructuredText, HTML, PDF, text.")
        run("init")
        run("index")
        say("2. Ask. The words that matched are in brackets, and every passage has a citation.")
        run("search", QUESTION, "--limit", "2", "--brackets")
        found = answer("search", QUESTION, "--limit", "1")["items"][0]
        say("3. Check the citation: the file is read again, hashed, extracted, and compared.")
        run("resolve", found["id"])
        say("4. Change one byte of the document, and check the same citation again.")
        path = Path(found["citation"].partition(";path=")[2].partition(";")[0])
        text = path.read_text("utf-8")
        path.write_text(text.replace("6.2 bar", "6.3 bar", 1), "utf-8")
        run("resolve", found["citation"], expect=1, shown=f"resolve {found['citation'][:40]}…")
        path.write_text(text, "utf-8")
        say("5. Put the document right and forge the citation instead: that is another verdict.")
        start,_,digest = found["citation"].rpartition("text=")
        run("resolve", f"{start}text={'0' if digest[0]!='0' else '1'}{digest[1:]}", expect=1, shown=f"resolve {found['citation'][:40]}… (one digit of its hash changed)")
        say("Next: 'mimirag init' in a folder of your own.")

if __name__=="__main__": main()
