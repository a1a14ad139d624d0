"Stores that hang, raise, lie, change under us and are appended to while we read; edits are never answered `verified`"
import json, os, random, sqlite3, subprocess, sys, textwrap, threading, time
from pathlib import Path
import pytest
from hypothesis import given, settings, strategies as st
from mimirag.evidence.citation import Citation
from mimirag.evidence.errors import SourceError, UsageError
from mimirag.retrieve.knowledge import KnowledgeBase
from mimirag.retrieve.record import passages
from mimirag.retrieve.resolver import Resolver
from mimirag.sources.jsonl import JsonLines
from mimirag.sources.records import Record, read_object
from mimirag.sources.profile import load_profile
from mimirag.sources.rows import Rows

LOG = '[[source]]\nid = "log"\nkind = "records"\nstore = "jsonl"\npath = "log.jsonl"\n'
DOCS = '[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n'

def write_rows(path: Path, rows, mode: str = "w"):
    with open(path, mode, encoding="utf-8") as file: file.write("".join(json.dumps(row, ensure_ascii=False)+"\n" for row in rows))

@pytest.fixture
def home(tmp_path):
    "A folder with a profile of a log and a handbook"
    (tmp_path/"docs").mkdir()
    (tmp_path/"docs/valve.md").write_text("# Relief valve\n\nThe relief valve opens at 7 bar.\n")
    write_rows(tmp_path/"log.jsonl", [dict(id=f"m{n}", date=f"2026-03-{n:02d}", text=f"Test {n}: the relief valve opened at 6.{n} bar.\nNote {n}") for n in range(1, 10)])
    (tmp_path/"mimirag.toml").write_text(DOCS+LOG)
    return tmp_path

@pytest.fixture
def kb(home):
    with KnowledgeBase(home) as opened:
        opened.build(workers=1)
        yield opened

@pytest.fixture
def store_of(tmp_path, monkeypatch):
    "A function: source text of a module with `make` to a knowledge base of documents and that store"
    opened = []
    def make(code: str, more: str = "", seconds: float = 1.0):
        name = f"store_{len(opened)}_{os.getpid()}_{abs(hash(code))}"
        folder = tmp_path/name
        (folder/"modules").mkdir(parents=True)
        (folder/"docs").mkdir()
        (folder/"docs/a.md").write_text("# Valve\n\nThe relief valve opens at 7 bar.\n")
        (folder/f"modules/{name}.py").write_text("from mimirag.sources.records import Record, RecordHit\n"+textwrap.dedent(code))
        monkeypatch.syspath_prepend(str(folder/"modules"))
        (folder/"mimirag.toml").write_text(f'[limits]\nrecord_seconds = {seconds}\n{DOCS}[[source]]\nid = "own"\nkind = "records"\nstore = "{name}:make"\n{more}')
        kb = KnowledgeBase(folder)
        opened.append(kb)
        kb.build(workers=1)
        return kb
    yield make
    for kb in opened: kb.close()

FORGED = "mimir:1:record:"+"a"*64+";source=own;path=r1;lines=1-1;text="+"b"*64

# a deployment's own store

def test_a_store_with_its_own_search(store_of):
    kb = store_of('''
        RECORDS = {"r1": Record("r1", dict(title="Valve test", day="2026-03-01", text="opened late")), "r2": Record("r2", dict(title="Pump"))}
        class Store:
            def search(self, query, *, limit): return [RecordHit(record, 2.0-n) for n,record in enumerate(RECORDS.values())][:limit]
            def fetch(self, record_id): return RECORDS[record_id]
        def make(): return Store()''')
    reply = kb.search("valve", kinds="records")
    assert [(item.path, item.score, item.date) for item in reply] == [("r1", 2.0, "2026-03-01"), ("r2", 1.0, None)] and reply.outcome=="found"
    assert all(kb.resolve(item).holds and kb.resolve(item.id).holds for item in reply)
    dated = kb.search("valve", kinds="records", since="2026")
    assert [item.path for item in dated] == ["r1"] and any("1 record without a date" in note for note in dated.scope.notes)
    assert [item.path for item in kb.search("valve", paths="r2", kinds="records")] == ["r2"]
    assert kb.resolve(FORGED.replace("path=r1", "path=r9")).currency=="source_gone"
    assert kb.status().sources[1].state=="fresh"

@pytest.mark.parametrize("body", ["raise RuntimeError('down\\x1b[2J')", "raise SystemExit(1)", "raise KeyboardInterrupt", "raise KeyError('x')", "return None", "return 7", "return [1]", "return [RecordHit(Record('r', {}), float('nan'))]",
                                  "return [RecordHit({'id': 'r'}, 1.0)]", "return [RecordHit(Record('r', {}), 'high')]", "import time; time.sleep(60)", "yield from iter(lambda: time.sleep(0.01), 0)"])
def test_a_store_that_fails_takes_nothing_from_documents(store_of, body):
    kb = store_of(f'''
        import time
        class Store:
            def search(self, query, *, limit):
                {body}
            def fetch(self, record_id):
                {body}
        def make(): return Store()''')
    began = time.monotonic()
    reply = kb.search("relief valve")
    assert time.monotonic()-began < 3
    assert [item.source for item in reply] == ["docs"]
    lost = "Record('r'" not in body and "{'id'" not in body
    assert reply.outcome=="degraded" or not lost
    assert any("own" in note for note in reply.scope.notes) and not any("\x1b" in note for note in reply.scope.notes)
    if "Record" not in body and "KeyError" not in body and "None" not in body: assert kb.resolve(FORGED).integrity=="source_unavailable"
    assert kb.search("relief valve", kinds="documents").outcome=="found"

def test_a_record_that_cannot_be_cited_is_left_out(store_of):
    kb = store_of('''
        BAD = [Record("", {}), Record(7, {}), Record("a", []), Record("b", {"x": float("inf")}), Record("c", {"x": 2**60}), Record("d", {1: 2}), Record("e", {"x": "\\ud800"}), Record("f", {"x": object()}), Record("g", {"x": "y"*5_000_000}), Record("x"*600, {})]
        class Store:
            def search(self, query, *, limit): return [RecordHit(record, 1.0) for record in [*BAD, Record("good", {"valve": 1})]]
            def fetch(self, record_id): return next(record for record in BAD if record.id==record_id)
        def make(): return Store()''')
    reply = kb.search("valve", kinds="records", limit=20)
    assert [item.path for item in reply] == ["good"] and reply.scope.unreadable==10
    assert any("10 hits left out" in note for note in reply.scope.notes)
    for id in "abcdefg": assert kb.resolve(FORGED.replace("path=r1", f"path={id}")).integrity=="source_unavailable"

def test_a_store_that_gives_without_end_or_something_else_than_asked(store_of):
    kb = store_of('''
        import itertools
        class Store:
            def search(self, query, *, limit): return (RecordHit(Record(str(n), {"valve": n}), 1.0) for n in itertools.count())
            def fetch(self, record_id): return Record("other", {})
        def make(): return Store()''')
    assert len(kb.search("valve", limit=5, kinds="records"))==5
    assert "gave 'other'" in kb.resolve(FORGED).reason

def test_a_store_that_lists(store_of):
    kb = store_of('''
        from mimirag.sources.records import Entry
        class Store:
            refused = []
            def state(self): return 1
            def entries(self): return [Entry(str(n), n, lambda n=n: self.fetch(str(n))) for n in range(3)]
            def fetch(self, record_id): return Record(record_id, dict(text=f"valve {record_id}", by=self))if record_id=="2" else Record(record_id, dict(text=f"valve {record_id}"))
        def make(): return Store()''')
    reply = kb.search("valve", kinds="records")
    assert sorted(item.path for item in reply)==["0", "1"] and kb.resolve(reply[0].id).holds

def test_a_hanging_store_is_not_waited_for_again_and_comes_back(store_of):
    kb = store_of('''
        import threading
        GATE = threading.Event()
        class Store:
            def search(self, query, *, limit): GATE.wait(); return []
            def fetch(self, record_id): return Record(record_id, {})
        def make(): return Store()''', seconds=0.5)
    assert kb.search("valve").outcome=="degraded"
    began = time.monotonic()
    assert [kb.resolve(FORGED).integrity for _ in range(50)]==["source_unavailable"]*50
    assert time.monotonic()-began < 1
    sys.modules[kb.profile.sources["own"].store.partition(":")[0]].GATE.set()
    until = time.monotonic()+10
    while kb.search("valve").outcome!="found": assert time.monotonic() < until
    assert kb.resolve(FORGED).integrity=="mismatch"

def test_a_hanging_store_does_not_hold_the_program(tmp_path):
    (tmp_path/"docs").mkdir()
    (tmp_path/"hang.py").write_text("import time\ndef make(): time.sleep(1000)\n")
    (tmp_path/"mimirag.toml").write_text('[limits]\nrecord_seconds = 0.2\n[[source]]\nid = "own"\nkind = "records"\nstore = "hang:make"\n')
    began = time.monotonic()
    ran = subprocess.run([sys.executable, "-m", "mimirag", "search", "valve"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])}, capture_output=True, text=True, timeout=60)
    assert time.monotonic()-began < 20 and "degraded" in ran.stdout and "did not answer within 0.2 s" in ran.stdout and ran.returncode==1, ran

@pytest.mark.parametrize("store, why", [("no_such_module_x:make", "no module 'no_such_module_x'"), ("json:nothing", "has no 'nothing'"), ("json:dumps", "could not be opened"), ("builtins:dict", "no 'search' and 'fetch'")])
def test_a_factory_that_is_none(home, store, why):
    (home/"mimirag.toml").write_text(f'{DOCS}[[source]]\nid = "own"\nkind = "records"\nstore = "{store}"\n')
    with KnowledgeBase(home) as kb:
        kb.build(workers=1)
        reply = kb.search("relief valve")
        assert reply.outcome=="degraded" and len(reply)==1 and any(why in note for note in reply.scope.notes)
        assert why in kb.resolve(FORGED).reason and why in kb.status().sources[1].reason

# files that change

def test_appending_while_reading(tmp_path):
    "A writer appends lines in pieces; every listing has whole records only, and in the end all of them"
    path,number,stop = tmp_path/"log.jsonl", 400, threading.Event()
    path.write_bytes(b"")
    def append():
        with open(path, "ab", buffering=0) as file:
            for n in range(number):
                line = json.dumps(dict(id=str(n), text="wört "*(n%50)), ensure_ascii=False).encode()+b"\n"
                for start in range(0, len(line), 37): file.write(line[start:start+37])
        stop.set()
    store,writer,seen = JsonLines(tmp_path, "log.jsonl"), threading.Thread(target=append), 0
    writer.start()
    while True:
        last = stop.is_set()
        entries = store.entries()
        assert [entry.id for entry in entries]==[str(n) for n in range(len(entries))] and len(entries) >= seen and store.bad==0
        for entry in entries[-3:]: assert entry.load().data["text"]=="wört "*(int(entry.id)%50)
        seen = len(entries)
        if last: break
    writer.join()
    assert seen==number

def test_bad_lines_are_reported_and_harm_no_other(home, kb):
    with open(home/"log.jsonl", "ab") as file: file.write(b'{"id": "n1", "x": NaN}\n{"id": "n2", "x": "\xff"}\n[]\n{"x": 1}\n{"id": null}\n{"id": "n3", "id": "n4"}\n{"id": "n5", "x": 9007199254740993}\n{"id": "n6", "x": "\\ud800"}\nhalf')
    assert len(kb.unreadable())==8 and kb.status().sources[1].unreadable==8
    assert kb.search("relief", kinds="records").outcome=="found" and kb.search("turbine", kinds="records").outcome=="degraded"

def test_a_record_edited_under_its_identifier_is_a_mismatch_and_a_deleted_one_is_gone(home, kb):
    item = kb.search("valve", kinds="records", limit=1)[0]
    rows = [json.loads(line) for line in open(home/"log.jsonl")]
    write_rows(home/"log.jsonl", [dict(row, text=row["text"].replace("opened", "closed")) if row["id"]==item.path else row for row in rows])
    verdict = kb.resolve(item)
    assert (verdict.integrity, verdict.currency, verdict.text)==("mismatch", "superseded_changed", None)
    assert kb.read(item).origin=="nothing"
    write_rows(home/"log.jsonl", [row for row in rows if row["id"]!=item.path])
    assert (kb.resolve(item).integrity, kb.resolve(item).currency)==("version_unavailable", "source_gone")
    (home/"log.jsonl").unlink()
    assert kb.resolve(item).integrity=="source_unavailable"
    write_rows(home/"log.jsonl", rows)
    assert kb.resolve(item).holds and kb.read(item).origin=="original"
    (home/"mimirag.toml").write_text(DOCS)
    assert kb.resolve(item).integrity=="withdrawn"

def test_order_of_keys_and_white_space_are_not_an_edit(home, kb):
    items = kb.search("valve", kinds="records")
    rows = [json.loads(line) for line in open(home/"log.jsonl")]
    (home/"log.jsonl").write_text("".join(" "+json.dumps(dict(reversed(row.items())), indent=None, separators=(" , ", " : "))+"\r\n" for row in reversed(rows)))
    assert all(kb.resolve(item).holds for item in items) and {str(item.citation) for item in kb.search("valve", kinds="records")}=={str(item.citation) for item in items}

# generated edits

_leaf = st.none() | st.booleans() | st.integers(-2**53+1, 2**53-1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(["a\nb", "x: y\n  z", "1", "true", "null", ""])
_value = st.recursive(_leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=3), max_leaves=8)
_data = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), _value, max_size=5)

@settings(max_examples=300)
@given(_data, _data)
def test_only_equal_objects_have_equal_versions(one, other):
    one,other = Record("r", one), Record("r", other)
    same = json.loads(one.canonical)==json.loads(other.canonical) and one.canonical==other.canonical
    assert (one.version==other.version)==same
    again = Record("r", read_object(json.dumps(one.data).encode()))
    assert again.version==one.version and again.text==one.text
    assert one.text.endswith("\n") and all(Citation.parse(str(passage.citation))==passage.citation for passage in passages("s", one))

def _mutate(row: dict, chance: random.Random) -> dict:
    "The same object with one small edit"
    row,key = dict(row), chance.choice([key for key in row if key!="id"])
    value = row[key]
    choices = [lambda: row.update({key: str(value)+" "}), lambda: row.pop(key), lambda: row.update({key: None}), lambda: row.update({key+"x": row.pop(key)}), lambda: row.update({"new": 0}), lambda: row.update({key: [value]})]
    if isinstance(value, str) and value:
        at = chance.randrange(len(value))
        choices += [lambda: row.update({key: value[:at]+chr((ord(value[at])-31)%90+32)+value[at+1:]}), lambda: row.update({key: value[:at]+value[at+1:]}), lambda: row.update({key: value+"\n"})] # the first keeps the size
    if isinstance(value, int): choices += [lambda: row.update({key: value+1}), lambda: row.update({key: str(value)})]
    chance.choice(choices)()
    return row

@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_no_edit_is_answered_verified(tmp_path, kind):
    "Law 2 over 400 edits, each asked at once, by a resolver that has just verified the record"
    chance,rows = random.Random(7), {f"m{n}": dict(id=f"m{n}", text=f"The valve {n} opened.\nAt {n} bar.", n=n, by="Ana") for n in range(8)}
    table = sqlite3.connect(tmp_path/"log.db", isolation_level=None)
    table.execute("CREATE TABLE log(id TEXT PRIMARY KEY, text, n, by)")
    for row in rows.values(): table.execute("INSERT INTO log VALUES(:id, :text, :n, :by)", row)
    (tmp_path/"mimirag.toml").write_text(LOG.replace('"jsonl"', f'"{kind}"').replace("log.jsonl", "log.db" if kind=="sqlite" else "log.jsonl")+('table = "log"\n' if kind=="sqlite" else ""))
    write_rows(tmp_path/"log.jsonl", rows.values())
    resolver,false = Resolver(load_profile(tmp_path/"mimirag.toml")), 0
    for _ in range(400):
        id = chance.choice(list(rows))
        record = resolver.shelves["log"].fetch(id)
        cited = passages("log", record)[0].citation
        assert resolver.resolve(cited).holds
        if kind=="sqlite":
            column,value = chance.choice([("text", rows[id]["text"]+chance.choice([" ", "x", "\n"])), ("n", rows[id]["n"]+1), ("by", None), ("by", b"Ana"), ("n", str(rows[id]["n"])), ("text", rows[id]["text"].swapcase())])
            table.execute(f"UPDATE log SET {column}=? WHERE id=?", (value, id))
        else:
            edited = dict(rows, **{id: _mutate(rows[id], chance)})
            write_rows(tmp_path/"log.jsonl", edited.values())
        verdict = resolver.resolve(cited)
        false += verdict.integrity=="verified"
        assert verdict.integrity=="mismatch", (verdict, cited)
        if kind=="sqlite": table.execute("UPDATE log SET text=:text, n=:n, by=:by WHERE id=:id", rows[id])
        else: write_rows(tmp_path/"log.jsonl", rows.values())
        assert resolver.resolve(cited).holds
    assert false==0
    resolver.close(), table.close()

def test_no_forged_field_of_a_citation_holds(home, kb):
    good = str(kb.search("valve", kinds="records", limit=1)[0].citation)
    record = kb.citation(good)
    others = [good.replace(record.version, "0"*64), good.replace(f"path={record.path}", "path=m2" if record.path!="m2" else "path=m3"), good.replace(record.text, "f"*64), good.replace("source=log", "source=docs"),
              good.replace(";lines=", ";page=1;lines="), good.replace(f"lines={record.lines[0]}-{record.lines[1]}", "lines=1-1"), good.replace(f"lines={record.lines[0]}-{record.lines[1]}", "lines=1-9999999999"),
              good.replace(":record:", ":doc:"), good.replace("source=log", "source=nowhere"), good.replace(f"path={record.path}", "path=%00"), good.replace(f"path={record.path}", "path="+"z"*5000), good.replace(f"path={record.path}", "path=..%2F..%2Fetc")]
    assert kb.resolve(good).holds
    for forged in others: assert kb.resolve(forged).integrity!="verified", forged

# databases

def test_a_database_at_work(tmp_path):
    "Rows are written by another process while they are read; a lock that lasts makes the source unavailable, not the search"
    database = sqlite3.connect(tmp_path/"lab.db", isolation_level=None)
    database.execute("CREATE TABLE runs(id INTEGER PRIMARY KEY, title TEXT, at INTEGER)")
    database.executemany("INSERT INTO runs VALUES(?, ?, ?)", [(n, f"valve run {n}", 1772409600+86400*n) for n in range(50)])
    (tmp_path/"mimirag.toml").write_text('[limits]\nrecord_seconds = 1\n[[source]]\nid = "lab"\nkind = "records"\nstore = "sqlite"\npath = "lab.db"\ntable = "runs"\noptions = { date = "at" }\n')
    with KnowledgeBase(tmp_path) as kb:
        item = kb.search("valve 7", limit=1)[0]
        assert (item.path, item.date, item.title)==("7", "2026-03-09", "valve run 7") and kb.resolve(item).holds
        assert [found.path for found in kb.search("valve", since="2026-04-19")]==["48", "49"]
        database.execute("INSERT INTO runs VALUES(99, 'turbine run', 0)")
        assert [found.path for found in kb.search("turbine")]==["99"]
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        assert kb.search("valve").outcome=="degraded" and kb.resolve(item).integrity=="source_unavailable"
        database.execute("COMMIT")
        database.close()
        time.sleep(1.5)
        assert kb.resolve(item).holds

def test_identifiers_that_a_database_takes_as_equal(tmp_path):
    "Each row is the one that was asked for, whatever the collation of the column"
    for collation,ids in {"NOCASE": ["aaa", "aaA", "aAa", "aAA", "Aaa", "AaA", "AAa", "AAA"], "RTRIM": ["a", "a ", "a  ", "a   ", "a    "]}.items():
        with sqlite3.connect(tmp_path/f"{collation}.db") as database:
            database.execute(f"CREATE TABLE t(id TEXT COLLATE {collation}, said)")
            database.executemany("INSERT INTO t VALUES(?, ?)", [(id, f"said by {number}") for number,id in enumerate(ids)])
        rows = Rows(tmp_path, f"{collation}.db", "t")
        assert [rows.fetch(entry.id)==entry.load() for entry in rows.entries()]==[True]*len(ids)
        rows.close()
        database.close()

def test_a_journal_that_is_a_link(tmp_path):
    "Pages of another database would be read through it"
    for name in ("secret", "public"):
        database = sqlite3.connect(tmp_path/f"{name}.db", isolation_level=None)
        database.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(id, said); INSERT INTO t VALUES('a', 'plain'); PRAGMA wal_checkpoint(TRUNCATE)")
        if name=="secret":
            database.execute("UPDATE t SET said='SENTINEL'")
            wal = (tmp_path/"secret.db-wal").read_bytes()
        database.close()
    (tmp_path/"kept").write_bytes(wal)
    (tmp_path/"public.db-wal").symlink_to(tmp_path/"kept")
    rows = Rows(tmp_path, "public.db", "t")
    with pytest.raises(SourceError, match="symbolic link"): rows.entries()
    (tmp_path/"public.db-wal").unlink()
    assert [entry.load().data["said"] for entry in rows.entries()]==["plain"]
    rows.close()

def test_runs_without_an_identifier(tmp_path):
    with sqlite3.connect(tmp_path/"m.db") as database: database.executescript("""CREATE TABLE experiments(experiment_id, name); CREATE TABLE runs(run_uuid, name, status, start_time, end_time, lifecycle_stage, experiment_id);
        CREATE TABLE params(key, value, run_uuid); CREATE TABLE latest_metrics(key, value, is_nan, run_uuid); CREATE TABLE tags(key, value, run_uuid);
        INSERT INTO runs VALUES('r1', 'valve run', 'FINISHED', 1772409600000, 'soon', 'active', 0), (NULL, 'valve null', 'FINISHED', 0, 0, 'active', 0), (7, 'valve int', 'FINISHED', 0, 0, 'active', 0), ('', 'valve', 'FINISHED', -1, 1e99, 'active', 0), (x'ff', 'valve', 'FINISHED', 0, 0, 'active', 9);
        INSERT INTO params VALUES(NULL, NULL, 'r1'), ('a', x'00', 'r1'); INSERT INTO latest_metrics VALUES('m', 'NaN', 0, 'r1'), ('i', 9e999, 0, 'r1'), ('n', 1, 1, 'r1')""")
    database.close()
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "lab"\nkind = "records"\nstore = "mlflow"\npath = "m.db"\n')
    with KnowledgeBase(tmp_path) as kb:
        reply = kb.search("valve")
        assert [item.path for item in reply]==["r1"] and reply.scope.unreadable==4 and kb.resolve(reply[0]).holds
        assert "4 left out" in kb.status().sources[0].reason

def test_what_a_store_prints_is_not_the_answer(tmp_path):
    (tmp_path/"noisy.py").write_text(textwrap.dedent("""
        print("loading")
        from mimirag.sources.records import Record, RecordHit
        class Store:
            def search(self, query, *, limit):
                print("searching")
                return [RecordHit(self.fetch("r1"), 1.0)]
            def fetch(self, record_id):
                print("fetching \\x1b[2J")
                return Record("r1", {"title": "Valve"})
        def make(): return Store()"""))
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "own"\nkind = "records"\nstore = "noisy:make"\n')
    def run(*arguments): return subprocess.run([sys.executable, "-m", "mimirag", *arguments], cwd=tmp_path, capture_output=True, text=True, env=os.environ|dict(PYTHONPATH=os.pathsep.join([os.fspath(tmp_path), *sys.path])))
    found = run("search", "valve", "--json")
    item, = json.loads(found.stdout)["items"]
    assert "loading" in found.stderr and run("search", "valve").stdout.startswith("found · 1 record · own\n")
    for arguments in (["resolve", item["citation"]], ["show", item["citation"]], ["status"], ["doctor"]): assert json.loads(run(*arguments, "--json").stdout)
    assert "loading" not in run("search", "valve").stdout and run("resolve", item["citation"]).returncode==0

def test_a_write_ahead_log(tmp_path):
    database = sqlite3.connect(tmp_path/"lab.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE runs(id, title TEXT)")
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "lab"\nkind = "records"\nstore = "sqlite"\npath = "lab.db"\ntable = "runs"\n')
    with KnowledgeBase(tmp_path) as kb:
        for n in range(5):
            database.execute("INSERT INTO runs VALUES(?, ?)", (n, f"valve{n}"))
            assert [item.path for item in kb.search(f"valve{n}", limit=1)]==[str(n)]
    database.close()

def test_hostile_names_and_files(tmp_path):
    name = 'x"; DROP TABLE y; --'
    database = sqlite3.connect(tmp_path/"lab.db", isolation_level=None)
    quoted = '"'+name.replace('"', '""')+'"'
    database.execute(f"CREATE TABLE {quoted}({quoted} TEXT, title TEXT)")
    database.execute("CREATE TABLE y(id)")
    database.execute(f"INSERT INTO {quoted} VALUES('1', 'valve')")
    database.close()
    (tmp_path/"mimirag.toml").write_text(f'[[source]]\nid = "lab"\nkind = "records"\nstore = "sqlite"\npath = "lab.db"\ntable = {json.dumps(name)}\noptions = {{ id = {json.dumps(name)} }}\n')
    before = (tmp_path/"lab.db").read_bytes()
    with KnowledgeBase(tmp_path) as kb:
        assert kb.resolve(kb.search("valve")[0]).holds
        for bad in [b"", b"SQLite format 3\0"+b"\xff"*4096, before[:3000], before[:100]+b"\0"*len(before)]:
            (tmp_path/"other.db").write_bytes(bad)
            os.replace(tmp_path/"other.db", tmp_path/"lab.db")
            assert kb.search("valve").outcome=="degraded"
    assert not list(tmp_path.glob("lab.db-*"))

def test_runs_of_mlflow_itself(tmp_path, monkeypatch):
    "A database that MLflow has made, where it is installed"
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path/'mlflow.db'}")
    run = client.create_run(client.create_experiment("valves", artifact_location=str(tmp_path/"artifacts")), run_name="opening pressure")
    client.log_param(run.info.run_id, "spring", "stiff")
    client.log_metric(run.info.run_id, "bar", 6.9)
    (tmp_path/"mimirag.toml").write_text('[[source]]\nid = "runs"\nkind = "records"\nstore = "mlflow"\npath = "mlflow.db"\n')
    with KnowledgeBase(tmp_path) as kb:
        assert kb.search("opening pressure").outcome=="not_searched" # it has not ended
        client.set_terminated(run.info.run_id)
        item = kb.search("opening pressure")[0]
        assert "params.spring: stiff" in item.text and "metrics.bar: 6.9" in item.text and kb.resolve(item).holds
        client.set_tag(run.info.run_id, "late", "yes")
        assert kb.resolve(item).integrity=="mismatch"

# beside documents

def test_filters_and_fusion(home, kb):
    both = kb.search("relief valve", limit=4)
    assert [item.source for item in both][0]=="docs" and {item.source for item in both}=={"docs", "log"} and both.outcome=="found"
    assert [item.source for item in kb.search("relief valve", kinds="documents")]==["docs"] and {item.source for item in kb.search("relief valve", sources="log")}=={"log"}
    dated = kb.search("relief valve", since="2026-03-03", until="2026-03-05")
    assert sorted(item.path for item in dated)==["m3", "m4", "m5"] and all("2026-03-03" <= item.date <= "2026-03-05" for item in dated) and dated.scope.records==3
    assert [item.path for item in kb.search("relief valve", paths="m[12]")]==sorted([item.path for item in kb.search("relief valve", paths="m[12]")], key=["m1", "m2"].index)
    with pytest.raises(UsageError): kb.search("valve", kinds="record")

def test_three_kinds_in_one_reply(home):
    repository = home/"engine"
    for command in (["init", "-q", str(repository)], ["-C", str(repository), "add", "-A"], ["-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"]):
        subprocess.run(["git", *command], check=True)
        if command[0]=="init": (repository/"valve.py").write_text("def relief_valve(bar):\n    return bar > 7\n")
    (home/"mimirag.toml").write_text(DOCS+LOG+'[[source]]\nid = "engine"\nkind = "code"\nrepo = "engine"\n')
    with KnowledgeBase(home) as kb:
        kb.build(workers=1)
        reply = kb.search("relief valve", limit=6)
        assert {item.citation.kind for item in reply}=={"doc", "code", "record"} and all(kb.resolve(item).holds and kb.resolve(item.id).holds for item in reply)
        assert [row.state for row in kb.status().sources]==["fresh"]*3 and kb.status().fresh
        (home/"report.md").write_text(" ".join(item.id for item in reply))
        kb.footer(home/"report.md")
    with KnowledgeBase(home) as kb: assert len(kb.verify(home/"report.md"))==len(reply) and kb.verify(home/"report.md").holds

def test_records_alone_need_no_index(home):
    (home/"mimirag.toml").write_text(LOG)
    with KnowledgeBase(home) as kb:
        assert kb.search("valve").outcome=="found" and kb.status().fresh and not kb.build().changed and not (home/"mimirag.sqlite").exists()
        item = kb.search("valve")[0]
    with KnowledgeBase(home) as kb: # another process knows the identifier too
        assert kb.resolve(item.id).holds and kb.read(item.id).lines

def test_many_threads(home, kb):
    answers,errors = [], []
    def ask():
        try:
            for _ in range(10): answers.append([item.path for item in kb.search("relief valve opened", limit=5)])
        except Exception as error: errors.append(error)
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not errors and len(answers)==60 and all(answer==answers[0] for answer in answers)

def test_paths_are_confined(tmp_path):
    (tmp_path/"in").mkdir()
    write_rows(tmp_path/"out.jsonl", [dict(id="secret", text="secret valve")])
    (tmp_path/"in/link.jsonl").symlink_to(tmp_path/"out.jsonl")
    (tmp_path/"in/far").symlink_to(tmp_path)
    os.mkfifo(tmp_path/"in/pipe.jsonl")
    for path in ["link.jsonl", "far/out.jsonl", "../out.jsonl", str(tmp_path/"out.jsonl"), "pipe.jsonl", "."]:
        for store,more in [("jsonl", ""), ("sqlite", 'table = "t"\n'), ("mlflow", "")]:
            (tmp_path/"in/mimirag.toml").write_text(f'[limits]\nrecord_seconds = 2\n[[source]]\nid = "log"\nkind = "records"\nstore = "{store}"\npath = {json.dumps(path)}\n{more}')
            with KnowledgeBase(tmp_path/"in") as kb:
                reply = kb.search("valve")
                assert reply.outcome=="degraded" and not reply.items and len(reply.scope.notes)==1, (path, reply)
                assert kb.resolve("mimir:1:record:"+"a"*64+";source=log;path=secret;lines=1-1;text="+"b"*64).integrity=="source_unavailable"
