"Vectors of every kind, in every form, against numpy and sqlite-vec; damage, threads, growth, and machines without the extension"
import itertools, random, shutil, subprocess, sys, threading
from contextlib import closing
import apsw, numpy as np, pytest
import mimirag.index.vectors as module
from mimirag.evidence.errors import BadIndex, UsageError
from mimirag.index.reader import Index, Opened
from mimirag.index.schema import create
from mimirag.index.vectors import Vectors, check_vectors, create_vectors, drop_vectors, has_vectors, put_vectors
from mimirag.index.writer import reopen

def key(number): return number.to_bytes(16, "big")

def write(path, rows, ids=None, dimension=None, documents=None):
    with closing(create(path)) as database:
        create_vectors(database, dimension or len(rows[0]))
        ids = list(range(1, len(rows)+1)) if ids is None else ids
        if documents is not None: database.execute("INSERT INTO passages VALUES('document', ?)", (np.array(documents, "<u4").tobytes(),))
        return put_vectors(database, ids, rows, [key(int(id) % 2**64) for id in ids])

def expected(rows, query, limit):
    "Numbers of the nearest, and their cosines, by definition"
    rows,query = np.asarray(rows, np.float64), np.asarray(query, np.float64)
    scores = (rows @ query)/np.linalg.norm(rows, axis=1)/np.linalg.norm(query)
    order = np.argsort(-scores, kind="stable")[:limit]
    return (order+1).tolist(), scores[order]

def world(number, dimension=384, subjects=60, seed=0):
    chance = np.random.default_rng(seed)
    return (chance.normal(size=(subjects, dimension))[chance.integers(0, subjects, number)]+chance.normal(size=(number, dimension))).astype(np.float32)

@pytest.fixture(scope="module")
def large(tmp_path_factory):
    "So many vectors that they are compared by signs first, in three documents of which the third has three passages"
    path,rows = tmp_path_factory.mktemp("large")/"large.sqlite", world(12_000)
    documents = np.ones(12_001, int)
    documents[0],documents[6_000:],documents[[77, 5_000, 11_999]] = 0, 2, 3
    write(path, rows, documents=documents)
    with closing(Index(path)) as index: yield Vectors(index), rows

@pytest.mark.parametrize("dimension", [1, 2, 6, 8, 63, 64, 65, 255, 384, 4_096, 8_192])
@pytest.mark.parametrize("number", [0, 1, 2, 15, 16, 17, 300])
def test_every_size(tmp_path, dimension, number):
    if dimension > 4_000 and number > 17: pytest.skip("only larger")
    rows = np.random.default_rng(dimension*1_000+number).normal(size=(number, dimension)).astype(np.float32)
    assert write(tmp_path/"one.sqlite", rows, dimension=dimension)==[]
    query = np.random.default_rng(5).normal(size=dimension)
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        vectors = Vectors(index)
        assert (vectors.dimension, vectors.number)==(dimension, number)
        for limit,exact in itertools.product((1, 10, number+1, 5_000), (False, True)):
            hits,(ids,scores) = vectors.search(query, limit, exact=exact), expected(rows, query, limit)
            np.testing.assert_allclose([hit.score for hit in hits], scores, atol=1e-6)
            if dimension > 2: assert [hit.passage for hit in hits]==ids
            assert [(-hit.score, hit.passage) for hit in hits]==sorted((-hit.score, hit.passage) for hit in hits)

FORMS = dict(double=lambda rows: rows.astype(np.float64), half=lambda rows: rows.astype(np.float16), columns=lambda rows: np.asfortranarray(rows), lists=lambda rows: rows.tolist(), strided=lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
             backwards=lambda rows: np.ascontiguousarray(rows[:, ::-1])[:, ::-1], swapped=lambda rows: rows.astype(">f4"), read_only=lambda rows: np.frombuffer(rows.tobytes(), "<f4").reshape(rows.shape), rows=lambda rows: list(rows),
             huge=lambda rows: rows.astype(np.float64)*1e300, tiny=lambda rows: rows.astype(np.float64)*1e-300, large=lambda rows: rows*np.float32(1e38)/4, integers=lambda rows: np.rint(rows*1e6).astype(np.int64))

@pytest.mark.parametrize("form", FORMS)
def test_every_form(tmp_path, form):
    rows = np.clip(world(40, 24), -3, 3)
    assert write(tmp_path/"one.sqlite", FORMS[form](rows), dimension=24)==[]
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        for query in (rows[3], FORMS[form](rows)[3], FORMS[form](rows[3:4])):
            hits,(ids,scores) = Vectors(index).search(query, 40), expected(rows, rows[3], 40)
            np.testing.assert_allclose([hit.score for hit in hits], scores, atol=2e-3 if form=="half" else 1e-6)
            if form!="half": assert [hit.passage for hit in hits]==ids
            assert all(type(hit.passage) is int and type(hit.score) is float and -1 <= hit.score <= 1 for hit in hits)

def test_subnormal_numbers(tmp_path):
    rows = (np.array([[1, 0], [3, 4], [0, -1]])*1e-45).astype(np.float32)
    assert rows.any(axis=1).all() and write(tmp_path/"one.sqlite", rows)==[]
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        assert [hit.passage for hit in Vectors(index).search(np.array([5e-324, 0]), 3)]==[1, 2, 3]

BROKEN = dict(zero=[0, 0, 0, 0], negative_zero=[-0.0]*4, nan=[1, np.nan, 0, 0], infinite=[np.inf, 0, 0, 0], minus_infinite=[0, 0, 0, -np.inf], short=[1, 0, 0], long=[1, 0, 0, 0, 0], empty=[], text=list("abcd"), nothing=None, nothings=[None]*4, nested=[[1, 0, 0, 0]], ragged=[1, [2], 0, 0],
              vast=[10**400, 0, 0, 0], words="vector")

@pytest.mark.parametrize("kind", BROKEN)
def test_broken_vectors_are_rejected_and_never_found(tmp_path, kind):
    rows = [[1, 0, 0, 0], BROKEN[kind], [0.5, 0.5, 0, 0], [-1, 0, 0, 0]]
    (id,reason), = write(tmp_path/"one.sqlite", rows)
    assert id==2 and reason and "Error" not in reason
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        for exact,limit in itertools.product((False, True), (1, 4, 9_999)):
            assert [hit.passage for hit in Vectors(index).search([1, 0, 0, 0], limit, exact=exact)]==[1, 3, 4][:limit]
        assert Vectors(index).search([1, 0, 0, 0], 5, among=[2])==[]
        assert Vectors(index).of([2])=={}
        with pytest.raises((UsageError, BadIndex)): Vectors(index).search(BROKEN[kind] if kind!="nested" else [0]*4, 3)

def test_a_broken_vector_does_not_leave_the_old_one(tmp_path):
    write(tmp_path/"one.sqlite", np.eye(4))
    with closing(apsw.Connection(str(tmp_path/"one.sqlite"))) as database:
        assert put_vectors(database, [2], [[np.nan]*4], [b"k"*16])==[(2, "a number of it is not finite")]
        assert put_vectors(database, [3, 3], [[0, 0, 1, 0], [0]*4], [b"k"*16]*2)==[(3, "all its numbers are zero")] # the later one counts
        assert put_vectors(database, [4, 4], [[0]*4, [1, 1, 0, 0]], [b"k"*16]*2)==[]
    with closing(Opened(tmp_path/"one.sqlite")) as index: assert [hit.passage for hit in Vectors(index).search([1, 1, 1, 1], 9)]==[4, 1]

def test_numbers_of_passages(tmp_path):
    ids = [np.int64(2**40), np.uint8(3), 2**62, 0, -7]
    assert write(tmp_path/"one.sqlite", np.eye(5), ids)==[]
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        assert [hit.passage for hit in Vectors(index).search(np.ones(5), 9)]==[-7, 0, 3, 2**40, 2**62]
        with pytest.raises(BadIndex): Vectors(index).search(np.ones(5), 9, documents=[1]) # of no document
        assert Vectors(index).search(np.ones(5), 9, among=np.array([2**40, 5]))[0].passage==2**40

@pytest.mark.parametrize("limit", [0, -1, -4_097])
def test_limits_below_one(large, limit):
    with pytest.raises(UsageError, match="the least is 1"): large[0].search(large[1][0], limit)

@pytest.mark.parametrize("limit", [1, 10, 4_096, 4_097, 11_999, 12_000, 10**12])
def test_limits_above_those_of_sqlite_vec(large, limit):
    vectors,rows = large
    hits,exact = vectors.search(rows[5], limit), vectors.search(rows[5], limit, exact=True)
    assert len(hits)==min(limit, 12_000) and hits[0].passage==6 and hits[0].score > 1-1e-9
    ids,scores = expected(rows, rows[5], limit)
    assert [hit.passage for hit in exact][:10]==ids[:10] and {hit.passage for hit in exact}=={*ids} # far down, the rounding of what is stored changes places
    np.testing.assert_allclose([hit.score for hit in exact], scores, atol=1e-6)
    assert len({hit.passage for hit in hits} & {*ids}) >= 0.99*len(ids)

def test_by_signs(large):
    "Of the ten and the hundred nearest, hardly one is lost"
    vectors,rows = large
    assert vectors._laid.floats is None
    queries,unit = rows[:60]+np.random.default_rng(3).normal(size=(60, 384)), rows/np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = np.argsort(-(queries @ unit.T), axis=1)+1
    for limit in (10, 100):
        found = [len({hit.passage for hit in vectors.search(query, limit)} & {*row[:limit].tolist()}) for query,row in zip(queries, nearest)]
        assert sum(found) >= 0.99*limit*len(queries)

def test_against_sqlite_vec(large, tmp_path):
    vectors,rows = large
    shutil.copyfile(vectors._index.path, tmp_path/"copy.sqlite")
    with closing(apsw.Connection(str(tmp_path/"copy.sqlite"))) as database:
        module._load(database)
        for query in rows[:10]+np.float32(0.3):
            theirs = [passage for passage, in database.execute("SELECT rowid FROM vector WHERE vector MATCH ? AND k=50", (query.tobytes(),))]
            assert len({*theirs} & {hit.passage for hit in vectors.search(query, 50, exact=True)}) >= 49 # it adds up in another order
        for row in (1, 500, 12_000):
            kept, = database.execute("SELECT vector FROM vector WHERE rowid=?", (row,)).fetchone()
            assert kept==module._read(vectors._index, vectors._laid, np.array([row-1])).tobytes()

def test_filters_come_first(large):
    vectors,rows = large
    far = -rows[77]
    assert [hit.passage for hit in vectors.search(far, 10, documents=[3])]==sorted([77, 5_000, 11_999], key=lambda id: -float(expected(rows[id-1:id], far, 1)[1][0]))
    assert [hit.passage for hit in vectors.search(rows[0], 10, documents=[3], among=np.array([77, 78]))]==[77]
    for documents,lot in (([1], range(1, 6_000)), ([2, 3], [77, 5_000, *range(6_000, 12_001)]), ([1, 2, 3, 99], range(1, 12_001))):
        ids = np.array([id for id in lot if documents!=[1] or id not in (77, 5_000)])
        for query in rows[:5]: assert [hit.passage for hit in vectors.search(query, 10, documents=documents)]==ids[np.array(expected(rows[ids-1], query, 10)[0])-1].tolist()
    assert vectors.search(rows[0], 10, documents=[])==vectors.search(rows[0], 10, documents=[99])==vectors.search(rows[0], 10, among=[])==[]
    assert [hit.passage for hit in vectors.search(rows[0], 10, among=np.array([5, 5, 10**9, -1], np.int64))]==[5]
    assert len(vectors.search(rows[0], 5_000, among=np.arange(2_000, 9_000, dtype=np.uint16)))==5_000

@pytest.mark.parametrize("dimension", [6, 8, 383, 768])
def test_another_width(large, dimension):
    with pytest.raises(BadIndex, match=f"vectors of 384 numbers and the question has one of {dimension}, .* run 'mimirag index'"): large[0].search(np.ones(dimension), 10)

def test_copies(tmp_path):
    "Of equal vectors the lower number comes first, also where they are more than candidates"
    rows = world(11_500)
    rows[1_000:9_000] = rows[1_000]
    write(tmp_path/"one.sqlite", rows)
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        vectors = Vectors(index)
        assert vectors._laid.floats is None
        for exact in (False, True):
            hits = vectors.search(rows[1_000], 2_500, exact=exact)
            assert [hit.passage for hit in hits]==list(range(1_001, 3_501)) and {hit.score for hit in hits}=={hits[0].score}
            few = vectors.search(rows[5]+rows[1_000], 10, exact=exact, among=np.arange(4_000, 9_500))
            assert [hit.passage for hit in few]==list(range(4_000, 4_010))

@pytest.mark.parametrize("number", [300, 11_200])
def test_history_does_not_matter(tmp_path, number):
    rows,queries = world(number), world(5, seed=9)
    rows[50:80] = rows[50]
    write(tmp_path/"straight.sqlite", rows)
    chance = np.random.default_rng(1)
    parts = number//1_500+3
    with closing(create(tmp_path/"winding.sqlite")) as database:
        create_vectors(database, 384)
        database.execute("BEGIN")
        for _ in range(2):
            for part in np.array_split(chance.permutation(number), parts): put_vectors(database, part+1, rows[::-1][part], [b"k"*16]*len(part))
            drop_vectors(database, chance.permutation(number)[:number//3]+1)
        for part in np.array_split(chance.permutation(number), parts): put_vectors(database, part+1, rows[part], [b"k"*16]*len(part))
        database.execute("COMMIT")
    with closing(Opened(tmp_path/"straight.sqlite")) as one, closing(Opened(tmp_path/"winding.sqlite")) as two:
        for query,limit,exact in itertools.product([*queries, rows[50]], (1, 25, 400), (False, True)):
            assert Vectors(one).search(query, limit, exact=exact)==Vectors(two).search(query, limit, exact=exact)
        alone = Vectors(one).search(rows[50], 40)
        assert [Vectors(one).search(rows[50], 1, among=[hit.passage])[0] for hit in alone]==alone # a score does not depend on what else is compared

def test_replacing_does_not_let_it_grow(tmp_path):
    rows,chance,path = world(4_000), random.Random(1), tmp_path/"one.sqlite"
    write(path, rows)
    first = path.stat().st_size
    current = {id: id-1 for id in range(1, 4_001)}
    for turn in range(20):
        with closing(reopen(path)) as database:
            database.execute("BEGIN")
            ids = [20*document+n for document in chance.sample(range(200), 20) for n in range(1, 21)]
            drop_vectors(database, ids)
            for id in ids: current[id] = (current[id]*7+turn) % 4_000
            put_vectors(database, ids, rows[[current[id] for id in ids]], [key(current[id]) for id in ids])
            database.execute("COMMIT")
            assert database.execute("PRAGMA integrity_check").get=="ok"
        assert path.stat().st_size < 1.6*first
    with closing(Opened(path)) as index:
        vectors = Vectors(index)
        assert vectors.number==4_000
        for query in (0, 17, 3_999):
            nearest = [hit.passage for hit in vectors.search(rows[query], 4_000) if hit.score > 1-1e-6]
            assert nearest==sorted(id for id,row in current.items() if row==query)
    with closing(apsw.Connection(str(path))) as database: drop_vectors(database, range(1, 4_001))
    with closing(Opened(path)) as index: assert (Vectors(index).number, Vectors(index).search(rows[0], 10))==(0, [])

def test_what_is_carried_over_is_the_same(tmp_path):
    rows = world(200, 32)
    write(tmp_path/"one.sqlite", rows)
    with closing(Opened(tmp_path/"one.sqlite")) as old:
        kept = Vectors(old).of([5, 1, 200, 7_000])
        assert kept.keys()=={1, 5, 200}
        write(tmp_path/"two.sqlite", list(kept.values()), list(kept))
    with closing(Opened(tmp_path/"two.sqlite")) as new: assert {id: row.tobytes() for id,row in Vectors(new).of([1, 5, 200]).items()}=={id: row.tobytes() for id,row in kept.items()}

def test_a_sample_does_not_depend_on_numbers_or_history(tmp_path):
    rows = world(300, 32)
    for name,ids in (("one", range(1, 301)), ("two", range(900, 600, -1))):
        with closing(create(tmp_path/f"{name}.sqlite")) as database:
            create_vectors(database, 32)
            put_vectors(database, ids, rows, [key(hash((n, "text")) % 2**60) for n in range(300)])
    found = []
    for name in ("one", "two"):
        with closing(Opened(tmp_path/f"{name}.sqlite")) as index: found.append([row.tobytes() for row in Vectors(index).sample(50)])
    assert len(found[0])==50 and found[0]==found[1]

def test_vectors_of_passages_that_are_gone(tmp_path):
    write(tmp_path/"one.sqlite", np.eye(4))
    with closing(reopen(tmp_path/"one.sqlite")) as database:
        database.executemany("INSERT INTO chunk(id, document, first, last, heading, anchor, key, size, terms, alike) VALUES(?, 1, 1, 1, '', '', 0, 0, 0, 0)", [(id,) for id in (1, 2, 4, 5)])
        with pytest.raises(BadIndex, match="vectors of 1 passages that are not in it"): check_vectors(database)
        drop_vectors(database, [3, 99])
        check_vectors(database)

def test_another_model_begins_anew(tmp_path):
    write(tmp_path/"one.sqlite", world(100, 32))
    with closing(apsw.Connection(str(tmp_path/"one.sqlite"))) as database:
        create_vectors(database, 48)
        put_vectors(database, [1], world(1, 48), [key(1)])
    with closing(Opened(tmp_path/"one.sqlite")) as index: assert (Vectors(index).dimension, Vectors(index).number)==(48, 1)

@pytest.mark.parametrize("dimension", [0, -1, 8_193])
def test_impossible_dimensions(tmp_path, dimension):
    with closing(create(tmp_path/"one.sqlite")) as database, pytest.raises(UsageError, match="cannot be kept"): create_vectors(database, dimension)

def test_an_index_without_vectors(tmp_path):
    create(tmp_path/"one.sqlite").close()
    with closing(Opened(tmp_path/"one.sqlite")) as index:
        assert not has_vectors(index)
        with pytest.raises(BadIndex, match=r"has no vectors; name a model under \[embedding\]"): Vectors(index)

def test_threads_share_one(large):
    vectors,rows = large
    expected_hits = [vectors.search(rows[n], 20) for n in range(12)]
    fresh,faults = Opened(vectors._index.path), []
    def work(n):
        try:
            for turn in range(15):
                which = (n+turn) % 12
                assert Vectors(fresh).search(rows[which], 20)==expected_hits[which]
                assert fresh.rows("SELECT count(*) FROM embedded")==[(12_000,)]
        except BaseException as error: faults.append(repr(error))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    fresh.close()
    assert not faults, faults[:2]

WITHOUT = """
import sys
{how}
import numpy as np
from mimirag.evidence.errors import MissingExtra
from mimirag.index.reader import Opened
from mimirag.index.schema import create
from mimirag.index.vectors import Vectors, create_vectors
with_vectors = Opened(sys.argv[1])
print([hit.passage for hit in Vectors(with_vectors).search(np.eye(4)[2], 2)], [hit.passage for hit in Vectors(with_vectors).search(np.eye(4)[2], 2, exact=True)])
try: create_vectors(create(sys.argv[2]), 4)
except MissingExtra as error: print(error)
"""
HOW = dict(not_installed="sys.modules['sqlite_vec'] = None", no_file="import sqlite_vec; sqlite_vec.loadable_path = lambda: '/nowhere/vec0'", not_a_library="import sqlite_vec; sqlite_vec.loadable_path = lambda: sys.argv[1]",
           no_such_method="import apsw\nclass Poor(apsw.Connection):\n    @property\n    def enable_load_extension(self): raise AttributeError('no enable_load_extension')\napsw.Connection = Poor")

@pytest.mark.parametrize("how", HOW)
def test_without_the_extension(tmp_path, how):
    "What is written can be read; what cannot be written is said"
    write(tmp_path/"one.sqlite", np.eye(4))
    done = subprocess.run([sys.executable, "-c", WITHOUT.format(how=HOW[how]), str(tmp_path/"one.sqlite"), str(tmp_path/"two.sqlite")], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    found,said = done.stdout.strip().split("\n")
    assert found=="[3, 1] [3, 1]" and "the extension sqlite-vec cannot be loaded here" in said and "take [embedding] out of the profile" in said

DAMAGE = dict(
    no_blocks=["DROP TABLE vector_chunks"], no_numbers=["DROP TABLE vector_vector_chunks00"], no_signs=["DROP TABLE vector_vector_chunks01"], no_keys=["DROP TABLE embedded"],
    lost_block=["DELETE FROM vector_vector_chunks00 WHERE _rowid_=2"], lost_signs=["DELETE FROM vector_vector_chunks01 WHERE _rowid_=2"], lost_places=["DELETE FROM vector_chunks WHERE chunk_id=2"],
    lost_key=["DELETE FROM embedded WHERE passage=3"], another_key=["UPDATE embedded SET passage=9999 WHERE passage=300"], short_numbers=["UPDATE vector_vector_chunks00 SET vectors=substr(vectors, 1, 100) WHERE _rowid_=2"],
    short_signs=["UPDATE vector_vector_chunks01 SET vectors=x'00' WHERE _rowid_=2"], text_numbers=["UPDATE vector_vector_chunks00 SET vectors='text' WHERE _rowid_=2"], text_signs=["UPDATE vector_vector_chunks01 SET vectors='text' WHERE _rowid_=2"],
    text_places=["UPDATE vector_chunks SET rowids='text' WHERE chunk_id=2"], no_validity=["UPDATE vector_chunks SET validity=x'' WHERE chunk_id=2"], all_taken=["UPDATE vector_chunks SET validity=x'ffff'"], none_taken=["UPDATE vector_chunks SET validity=x'0000'"],
    same_passage=["UPDATE vector_chunks SET rowids=(SELECT rowids FROM vector_chunks WHERE chunk_id=1) WHERE chunk_id=2"], nan=["UPDATE vector_vector_chunks00 SET vectors=zeroblob(length(vectors)-4)||x'0000c07f' WHERE _rowid_=2"], zero=["UPDATE vector_vector_chunks00 SET vectors=zeroblob(length(vectors))"],
    vast=["UPDATE vector_vector_chunks00 SET vectors=CAST(replace(hex(zeroblob(length(vectors)/2)), '0', x'7f') AS BLOB)"])

@pytest.mark.parametrize("signs_first", [False, True])
@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_told(tmp_path, monkeypatch, kind, signs_first):
    rows = world(300, 40)
    write(tmp_path/"one.sqlite", rows)
    if signs_first:
        monkeypatch.setattr(module, "_FEW", 0)
        monkeypatch.setattr(module, "_LEAST_DIMENSION", 0)
    with closing(apsw.Connection(str(tmp_path/"one.sqlite"))) as database:
        for sql in DAMAGE[kind]: database.execute(sql)
    with closing(Opened(tmp_path/"one.sqlite")) as index, pytest.raises(BadIndex, match="mimirag index --rebuild"):
        for row in rows: Vectors(index).search(row, 5, exact=kind in ("nan", "zero", "vast"))

@pytest.mark.parametrize("few", [0, module._FEW])
def test_bytes_changed_anywhere(tmp_path, monkeypatch, few):
    "Whatever is changed in the file, a search answers in numbers or says that the index is damaged"
    monkeypatch.setattr(module, "_FEW", few)
    monkeypatch.setattr(module, "_LEAST_DIMENSION", 0)
    rows,chance = world(60, 24), random.Random(2)
    write(tmp_path/"one.sqlite", rows)
    whole,told = (tmp_path/"one.sqlite").read_bytes(), 0
    for _ in range(250):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 8, 64))): data[chance.randrange(100, len(data))] = chance.randrange(256)
        (tmp_path/"two.sqlite").write_bytes(data)
        try:
            with closing(Opened(tmp_path/"two.sqlite")) as index:
                for exact in (False, True): assert all(-1 <= hit.score <= 1 for hit in Vectors(index).search(rows[7], 60, exact=exact))
                Vectors(index).of([3])
        except BadIndex: told += 1
    assert told > 50
