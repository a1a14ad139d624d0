"""Builds that are killed, builds that meet, readers that watch: the index is always the old one or the new one, whole."""
import os, random, re, signal, subprocess, sys, threading, time
from pathlib import Path
import pytest
from mimirag.evidence.errors import BadIndex
from mimirag.index.postings import BYTES
from mimirag.index.reader import Index
from mimirag.retrieve.knowledge import KnowledgeBase

def mimirag(*arguments, **more): return subprocess.Popen([sys.executable, "-m", "mimirag", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

def two_worlds(home: Path, files: int) -> tuple[Path, Path]:
    "Two profiles with one index: a source of alphas, a source of betas"
    for word in ("alpha", "beta"):
        (home/word).mkdir()
        for n in range(files): (home/word/f"{n}.md").write_text(f"# {word} {n}\n\n{f'{word} valve {n} opens. '*40}\n")
        (home/f"{word}.toml").write_text(f'[profile]\nindex = "shared.sqlite"\n[[source]]\nid = "docs"\nkind = "documents"\nroot = "{word}"\n')
    return home/"alpha.toml", home/"beta.toml"

def look(index: Path, files: int) -> str:
    "What a reader sees: one of the two worlds, whole, or an assertion"
    opened = Index(index)
    counts = {word: len(opened.posting(word))//BYTES for word in ("alpha", "beta")}
    passages = opened.rows("SELECT count(*) FROM chunk")[0][0]
    found = opened.passages([id for id, in opened.rows("SELECT id FROM chunk")])
    texts = {opened.page(passage.extraction, None)[0].split()[1] for passage in found.values()}
    generation = opened.generation
    opened.close()
    assert sorted(counts.values())==[0, passages] and passages >= files and len(texts)==1, (counts, passages, texts)
    return generation

def test_killed_at_any_moment(tmp_path):
    "SIGKILL at 60 random moments of builds that had not ended, while readers query"
    files,kills = 30, 60
    profiles = two_worlds(tmp_path, files)
    index,mark = tmp_path/"shared.sqlite", f"MIMIRAG_TEST_{os.getpid()}"
    seen,faults,stop = set(), [], threading.Event()
    began = time.monotonic()
    assert mimirag("index", "-p", str(profiles[0])).wait()==0
    usual = time.monotonic()-began
    def reader():
        while not stop.is_set():
            try: seen.add(look(index, files))
            except Exception as error: faults.append(repr(error))
            time.sleep(0.002)
    readers = [threading.Thread(target=reader) for _ in range(2)]
    for thread in readers: thread.start()
    chance,killed,tried = random.Random(7), 0, 0
    while killed < kills and tried < 4*kills:
        tried += 1
        process = mimirag("index", "-p", str(profiles[tried % 2]), env=dict(os.environ, **{mark: "1"}))
        time.sleep(chance.uniform(0, 1.1*usual))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode: killed += 1
        else: usual *= 0.97 # a busy machine was slower when it was timed
    stop.set()
    for thread in readers: thread.join()
    assert not faults, faults[:3]
    assert killed==kills, f"of {tried} builds only {killed} were killed before they ended"
    assert mimirag("index", "-p", str(profiles[0])).wait()==0
    assert look(index, files) in seen
    assert {path.name for path in tmp_path.iterdir()}=={"alpha", "beta", "alpha.toml", "beta.toml", "shared.sqlite"}
    time.sleep(0.5)
    assert not running(mark), "workers of killed builds are still there"

def running(mark: str) -> list[int]:
    "Processes with a mark in their environment"
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{mark}=".encode() in path.read_bytes(): found.append(int(path.parent.name))
        except OSError: pass
    return found

def test_two_builds_at_once(tmp_path):
    "Both end well, one after the other, and the index is wholly one of theirs"
    profiles = two_worlds(tmp_path, 20)
    builds = [mimirag("index", "-p", str(profile)) for profile in profiles for _ in range(2)]
    outputs = [build.communicate() for build in builds]
    assert [build.returncode for build in builds]==[0]*4, outputs
    look(tmp_path/"shared.sqlite", 20)
    assert not list(tmp_path.glob("shared.sqlite?*"))
    assert any("waiting for another build" in err for _,err in outputs)

def test_a_reader_notices_a_new_generation(kb_of):
    kb = kb_of({"a.md": "# One\n\nalpha\n"})
    before = kb.search("alpha")
    (kb.profile.root("docs")/"b.md").write_text("# Two\n\nalpha too\n")
    with KnowledgeBase(kb.profile.file) as other: other.build(workers=1)
    after = kb.search("alpha")
    assert len(before)==1 and len(after)==2 and after.generation!=before.generation

@pytest.mark.parametrize("name", ["idx#1.db", "notes%20v2.db", "with space.db", "pl+us&x=1.db", "q?mark.db", "naïve ☃.db", "a;b'c\"d.db"])
def test_paths_that_look_like_something_else(tmp_path, name):
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/a.md").write_text("a plover\n")
    (tmp_path/"mimirag.toml").write_text(f"[profile]\nindex = '''{name}'''\n[[source]]\nid = \"d\"\nkind = \"documents\"\nroot = \"docs\"\n")
    with KnowledgeBase(tmp_path) as kb:
        kb.build(workers=1)
        assert kb.search("plover").outcome=="found"
    assert {path.name for path in tmp_path.iterdir()}=={"docs", "mimirag.toml", name}

def as_nobody(function) -> str:
    "What `function` returns in a child process that may not write where root may (the interpreter itself may lie in root's home, so nothing is executed anew)"
    out,into = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid()==0: os.setuid(65534)
            said = function()
        except BaseException as error: said = f"{type(error).__name__}: {error}"
        os.write(into, said.encode())
        os._exit(0)
    os.close(into)
    with open(out) as reader: said = reader.read()
    os.waitpid(child, 0)
    return said

def test_a_read_only_folder(kb_of):
    "A finished index needs no write access, and nothing appears beside it"
    kb = kb_of({"a.md": "a plover\n"})
    home = kb.profile.file.parent
    assert kb.search("plover").outcome=="found" and kb.resolve(kb.search("plover")[0]).holds # everything is imported
    kb.close()
    for folder in [home, *home.parents]:
        if "pytest" in folder.name or folder in (home, home.parent): os.chmod(folder, 0o755)
    os.chmod(home/"mimirag.sqlite", 0o444)
    os.chmod(home, 0o555)
    try:
        assert as_nobody(lambda: kb.search("plover").outcome)=="found"
        assert as_nobody(lambda: kb.resolve(kb.search("plover")[0]).integrity)=="verified"
        (home/"docs/b.md").write_text("changed\n")
        said = as_nobody(lambda: str(kb.build(workers=1)))
        assert said.startswith("BadIndex") and "cannot be written" in said, said
        assert {path.name for path in home.iterdir()}=={"docs", "mimirag.toml", "mimirag.sqlite"}
        assert (home/"mimirag.sqlite").read_bytes()[18:20]==b"\x01\x01"
    finally: os.chmod(home, 0o755)

def test_damaged_indexes_are_refused(kb_of):
    kb = kb_of({f"{n}.md": f"# Part {n}\n\n{'a plover and a knot. '*60}\n" for n in range(40)})
    path = kb.profile.index
    whole = path.read_bytes()
    for data,word in [(b"", "empty"), (b"not a database\n"*20, "not an index"), (whole[:len(whole)//2+100], "damaged"), (whole+b"x", "damaged"), (whole[:60]+b"\0\0\0\x63"+whole[64:], "another version"),
                      (whole[:68]+b"\0\0\0\0"+whole[72:], "not an index of MimiRAG")]:
        path.write_bytes(data)
        with pytest.raises(BadIndex, match=word) as refused: kb.search("plover")
        assert str(path) in str(refused.value) and ("mimirag index" in str(refused.value) or "name another file" in str(refused.value))
        done = subprocess.run([sys.executable, "-m", "mimirag", "search", "plover", "-p", str(kb.profile.file)], capture_output=True, text=True)
        assert done.returncode==3 and done.stderr.count("\n")==1 and "Traceback" not in done.stderr
    from mimirag.doctor import examine
    chance = random.Random(3)
    for _ in range(12): # torn in the middle, under a good header: an answer or a sentence, never a traceback, and the doctor sees it
        place = chance.randrange(1, len(whole)//4096-4)*4096
        path.write_bytes(whole[:place]+chance.randbytes(4096*4)+whole[place+4096*4:])
        for ask in (lambda: kb.search("plover"), lambda: kb.resolve("mc1-"+"a"*26), lambda: kb.status(), lambda: kb.unreadable()):
            try: ask()
            except BadIndex as error: assert "damaged" in str(error) or "not an index" in str(error)
        assert any(finding.about=="index" and finding.state=="bad" for finding in examine(kb.profile.file))
        assert mimirag("index", "-p", str(kb.profile.file), "--rebuild").wait()==0
        assert kb.search("plover").outcome=="found" and kb.search("plover", limit=50).scope.searched==40
    path.write_bytes(whole[:len(whole)//2+100])
    assert kb.build(workers=1).added==40 # a damaged index of ours is built again
    assert kb.search("plover").outcome=="found"

def test_other_files_are_left_alone(kb_of):
    "A profile that names a document, or a folder, as its index destroys nothing"
    kb = kb_of({"a.md": "a plover\n"}, build=False)
    profile = kb.profile.file
    for name in ["docs/a.md", "docs", "mimirag.toml"]:
        profile.write_text(f'[profile]\nindex = "{name}"\n[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n')
        before = {path: path.read_bytes() for path in profile.parent.rglob("*") if path.is_file()}
        for command in ("index", "search x", "status"):
            done = subprocess.run([sys.executable, "-m", "mimirag", *command.split(), "-p", str(profile)], capture_output=True, text=True)
            assert done.returncode in (1, 3) and "Traceback" not in done.stderr and "delete" not in done.stderr, done
        assert {path: path.read_bytes() for path in profile.parent.rglob("*") if path.is_file()}==before

def test_a_missing_index_is_not_created(tmp_path):
    (tmp_path/"docs").mkdir()
    (tmp_path/"mimirag.toml").write_text('[profile]\nindex = "missing/x.db"\n[[source]]\nid = "d"\nkind = "documents"\nroot = "docs"\n')
    for command in (["search", "x"], ["status"], ["index"]):
        done = subprocess.run([sys.executable, "-m", "mimirag", *command, "-p", str(tmp_path)], capture_output=True, text=True)
        assert done.returncode in (1, 3) and re.search("missing", done.stdout+done.stderr) and "Traceback" not in done.stderr, (command, done)
    assert {path.name for path in tmp_path.iterdir()}=={"docs", "mimirag.toml"}

def test_bytes_changed_anywhere(kb_of):
    "A changed byte is told as damage, or changes nothing but an order; no other error comes out, and the next build is whole"
    kb = kb_of({f"{n}.md": f"# Valve {n}\n\nIt opens at {n} bar.\n\n## Spare parts\n\nGasket {n%7}, spring {n%5}.\n" for n in range(40)})
    index,asked = kb.profile.index, ["valve opens", "gasket 3", '"opens at 5 bar"']
    ids = [item.id for item in kb.search("valve", limit=5)]
    whole,choose,told = index.read_bytes(), random.Random(7), 0
    for _ in range(80):
        changed = bytearray(whole)
        for _ in range(choose.choice([1, 3, 40])): changed[choose.randrange(100, len(changed))] = choose.randrange(256)
        index.write_bytes(changed)
        kb.close()
        for ask in [*(lambda query=query: kb.search(query) for query in asked), lambda: list(kb.grep("opens")), lambda: kb.resolve(ids[0]), kb.status]:
            try: ask()
            except BadIndex as error: told += "damaged" in str(error)
    assert told > 50
    kb.build(workers=1, rebuild=True)
    assert [item.id for item in kb.search("valve", limit=5)]==ids

def test_a_pipe_in_the_place_of_the_index(tmp_path):
    "It is refused, and nobody waits for what never comes out of it"
    first,_ = two_worlds(tmp_path, 1)
    os.mkfifo(tmp_path/"shared.sqlite")
    for command in [["index"], ["search", "valve"]]:
        asked = mimirag(*command, "-p", str(first))
        assert "is no file" in asked.communicate(timeout=30)[1] and asked.returncode==3
