#!/usr/bin/env python
"""Code at a commit beside git itself: python tools/bench_code.py REPOSITORY [REF]

Builds an index of the files at REF (HEAD) and compares its CPU with `git cat-file --batch` and one FTS5 insert of the same blobs; asks for literal strings beside
`git grep` on the same commit; and asks for names that are defined once in the Python files: is the definition at rank 1? Nothing is written to the repository.
"""
import ast, json, random, re, resource, statistics, subprocess, sys, tempfile, time
from collections import defaultdict
from pathlib import Path

def git(repository: Path, *arguments: str, given: bytes|None = None) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *arguments], input=given, capture_output=True).stdout

def blobs(repository: Path, ref: str) -> dict[str, bytes]:
    "Contents by path"
    rows = [row.split("\t", 1) for row in git(repository, "ls-tree", "-rz", ref).decode("utf-8", "replace").split("\0") if " blob " in row]
    out,at,found = git(repository, "cat-file", "--batch", given="".join(f"{head.split()[2]}\n" for head,_ in rows).encode()), 0, {}
    for _,path in rows:
        line = out.index(b"\n", at)
        size = int(out[at:line].split()[2])
        found[path],at = out[line+1:line+1+size], line+size+2
    return found

def used() -> float: return sum(found.ru_utime+found.ru_stime for found in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))

def cost(work) -> tuple[float, float, object]:
    "CPU and wall seconds of a call, with its children, and what it gave"
    began,cpu = time.perf_counter(), used()
    given = work()
    return used()-cpu, time.perf_counter()-began, given

def floor(repository: Path, ref: str, folder: Path) -> dict[str, bytes]:
    import apsw
    found,database = blobs(repository, ref), apsw.Connection(str(folder/"floor.sqlite"))
    for _ in database.execute("PRAGMA synchronous=OFF; CREATE VIRTUAL TABLE words USING fts5(path, text)"): pass
    with database: database.executemany("INSERT INTO words VALUES(?, ?)", ((path, data.decode("utf-8", "replace")) for path,data in found.items()))
    return found

def strings(found: dict[str, bytes], most: int = 60) -> list[str]:
    "Calls as they stand in the files, and some strings that are in many or in none"
    calls = sorted({call.decode() for data in found.values() for call in re.findall(rb"[A-Za-z_]{6,30}\(", data)})
    return random.Random(1).sample(calls, min(most, len(calls)))+["import os", "return None", "TODO", "http://", "xyzzy_nothing"]

def definitions(found: dict[str, bytes], most: int = 700) -> list[tuple[str, str, int]]:
    "Names that are defined once, with path and line"
    places = defaultdict(list)
    for path,data in found.items():
        if not path.endswith(".py"): continue
        try: tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError): continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): places[node.name].append((path, node.lineno))
    once = sorted((name, *where[0]) for name,where in places.items() if len(where)==1 and not name.startswith("__"))
    return random.Random(3).sample(once, min(most, len(once)))

def main():
    if len(sys.argv) < 2 or not git(Path(sys.argv[1]), "rev-parse", "--git-dir"): sys.exit("bench_code: name a git repository, as in: python tools/bench_code.py REPOSITORY [REF]")
    import mimirag
    repository,ref = Path(sys.argv[1]).resolve(), (sys.argv[2:] or ["HEAD"])[0]
    with tempfile.TemporaryDirectory(prefix="mimirag-bench-") as folder:
        (Path(folder)/"mimirag.toml").write_text(f'[[source]]\nid = "code"\nkind = "code"\nrepo = {json.dumps(str(repository))}\nref = {json.dumps(ref)}\n')
        with mimirag.open(folder) as kb:
            cpu,wall,report = cost(kb.build)
            least,_,found = cost(lambda: floor(repository, ref, Path(folder)))
            print(f"build: {report.documents:,} files, {report.passages:,} passages, {cpu:.1f} s CPU, {wall:.1f} s wall; {cpu/least:.1f} x cat-file and FTS5 ({least:.2f} s); again {cost(kb.build)[1]:.2f} s")
            kb.grep("warm")
            times = [(cost(lambda: kb.grep(text, limit=1000))[1], cost(lambda: git(repository, "grep", "-nIF", "-e", text, ref))[1]) for text in strings(found)]
            ours,theirs = (1000*statistics.median(column) for column in zip(*times))
            print(f"grep: p50 {ours:.1f} ms, git grep {theirs:.1f} ms, {ours/theirs:.2f} of it, {len(times)} strings")
            names = definitions(found)
            first = sum(bool(items := kb.search(name, limit=1).items) and items[0].path==path and items[0].lines[0] <= line <= items[0].lines[1] for name,path,line in names)
            print(f"definitions: rank 1 for {first} of {len(names)} names")

if __name__=="__main__": main()
