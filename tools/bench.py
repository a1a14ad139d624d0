#!/usr/bin/env python
"""Speed and size beside floors and peers, measured in one run: python tools/bench.py FOLDER [NAME ...]

FOLDER holds corpora, a folder each (HTML and reStructuredText, or PDF). Everything is measured in processes of its own; CPU seconds are those of a process and
its children. Floors are written by hand: walk, read, take the text, cut it into pieces of 1,200 characters, insert them into FTS5. Peers (tantivy, bm25s) are
measured where they are installed: pip install tantivy bm25s. Questions are titles that only one file has; a hit is that file.
"""
import html, json, random, re, resource, shutil, subprocess, sys, tempfile, time
from pathlib import Path

HTML,TEXT = {".html", ".htm"}, {".rst", ".md", ".txt"}

def files(corpus: Path) -> list[Path]: return sorted(path for path in corpus.rglob("*") if path.suffix.lower() in HTML|TEXT and path.is_file())

def text_of(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix.lower() in TEXT: text = data.decode("utf-8", "replace")
    else:
        from selectolax.lexbor import LexborHTMLParser
        tree = LexborHTMLParser(data)
        for node in tree.css("script,style,nav,noscript"): node.decompose()
        text = tree.body.text(separator="\n") if tree.body else ""
    return re.sub(r"\n[ \t]*(?:\n[ \t]*)+", "\n\n", text)

def pieces(text: str, target: int = 1200):
    "Paragraphs, packed to about a size"
    pack,size = [], 0
    for paragraph in text.split("\n\n"):
        if size and size+len(paragraph) > target:
            yield "\n\n".join(pack)
            pack,size = [], 0
        if paragraph.strip():
            pack.append(paragraph)
            size += len(paragraph)
    if pack: yield "\n\n".join(pack)

def questions(corpus: Path, most: int = 200) -> list[tuple[str, str]]:
    "Titles of three to twelve words that one file has, and the file"
    found = {}
    for path in files(corpus):
        head = path.read_bytes()[:60_000].decode("utf-8", "replace")
        title = re.search(r"<h1[^>]*>(.*?)</h1>|<title>(.*?)</title>", head, re.S|re.I) if path.suffix.lower() in HTML else re.search(r"^(.{4,90})\n[=\-~*#]{4,}\s*$", head, re.M)
        words = re.sub(r"[^\w\s\-.]", " ", html.unescape(re.sub(r"<[^>]+>", "", next(filter(None, title.groups()), "")))).split() if title else []
        if 3 <= len(words) <= 12: found.setdefault(" ".join(words).lower(), []).append(path.relative_to(corpus).as_posix())
    alone = sorted((title, paths[0]) for title,paths in found.items() if len(paths)==1)
    random.Random(7).shuffle(alone)
    return alone[:most]

def ask(find, corpus: Path) -> dict:
    "Times and quality of `find(query)`, which gives paths; the first round warms up"
    asked,times,ranks = questions(corpus), [], []
    for round in range(2):
        for query,path in asked:
            began = time.perf_counter()
            paths = list(dict.fromkeys(find(query)))
            if round: times.append(1000*(time.perf_counter()-began))
            else: ranks.append(paths.index(path)+1 if path in paths[:10] else 0)
    times.sort()
    return dict(p50_ms=times[len(times)//2], p95_ms=times[int(.95*len(times))], hit1=sum(rank==1 for rank in ranks)/len(ranks), hit10=sum(map(bool, ranks))/len(ranks), MRR=sum(1/rank for rank in ranks if rank)/len(ranks))

# What is measured, each in a process of its own

def floor_extract(corpus: Path, work: Path): return dict(bytes=sum(len(text_of(path).encode()) for path in files(corpus)))

def floor_fts5(corpus: Path, work: Path):
    import apsw
    database = apsw.Connection(str(work/"floor.sqlite"))
    for _ in database.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE piece(id INTEGER PRIMARY KEY, path TEXT, text TEXT); CREATE VIRTUAL TABLE words USING fts5(text, content='piece', content_rowid='id')"): pass
    with database:
        number = 0
        for path in files(corpus):
            for text in pieces(text_of(path)):
                number += 1
                database.execute("INSERT INTO piece VALUES(?, ?, ?)", (number, path.relative_to(corpus).as_posix(), text))
                database.execute("INSERT INTO words(rowid, text) VALUES(?, ?)", (number, text))
    database.execute("INSERT INTO words(words) VALUES('optimize')")
    return dict(pieces=number, size=(work/"floor.sqlite").stat().st_size)

def floor_fts5_ask(corpus: Path, work: Path):
    import apsw
    database = apsw.Connection(str(work/"floor.sqlite"))
    def find(query): return [path for path, in database.execute("SELECT path FROM words JOIN piece ON piece.id=words.rowid WHERE words MATCH ? ORDER BY bm25(words) LIMIT 10", (" OR ".join(f'"{word}"' for word in re.findall(r"\w+", query)),))]
    return ask(find, corpus)

def peer_tantivy(corpus: Path, work: Path):
    import tantivy
    fields = tantivy.SchemaBuilder()
    fields.add_text_field("path", stored=True, tokenizer_name="raw"); fields.add_text_field("text", stored=True)
    (work/"tantivy").mkdir()
    index = tantivy.Index(fields.build(), path=str(work/"tantivy"))
    writer = index.writer(heap_size=128_000_000, num_threads=2)
    for path in files(corpus):
        for text in pieces(text_of(path)): writer.add_document(tantivy.Document(path=path.relative_to(corpus).as_posix(), text=text))
    writer.commit(); writer.wait_merging_threads()
    return dict(size=sum(path.stat().st_size for path in (work/"tantivy").rglob("*")))

def peer_tantivy_ask(corpus: Path, work: Path):
    import tantivy
    index = tantivy.Index.open(str(work/"tantivy"))
    searcher = index.searcher()
    def find(query): return [searcher.doc(address)["path"][0] for _,address in searcher.search(index.parse_query(" OR ".join(f'"{word}"' for word in re.findall(r"\w+", query)), ["text"]), 10).hits]
    return ask(find, corpus)

def peer_bm25s(corpus: Path, work: Path):
    import bm25s
    rows = [(path.relative_to(corpus).as_posix(), text) for path in files(corpus) for text in pieces(text_of(path))]
    ranking = bm25s.BM25()
    ranking.index(bm25s.tokenize([text for _,text in rows], stopwords="en", show_progress=False), show_progress=False)
    ranking.save(str(work/"bm25s"), corpus=[dict(path=path, text=text) for path,text in rows])
    return dict(size=sum(path.stat().st_size for path in (work/"bm25s").rglob("*")))

def peer_bm25s_ask(corpus: Path, work: Path):
    import bm25s
    ranking = bm25s.BM25.load(str(work/"bm25s"), load_corpus=True, mmap=True)
    return ask(lambda query: [row["path"] for row in ranking.retrieve(bm25s.tokenize(query, stopwords="en", show_progress=False), k=10, show_progress=False)[0][0]], corpus)

def profile(corpus: Path, work: Path) -> Path:
    path = work/"mimirag.toml"
    path.write_text(f'[[source]]\nid = "docs"\nkind = "documents"\nroot = {json.dumps(str(corpus))}\n')
    return path

def ours(corpus: Path, work: Path):
    from mimirag import KnowledgeBase
    with KnowledgeBase(profile(corpus, work)) as kb:
        report = kb.build()
        return dict(documents=report.documents, pieces=report.passages, size=kb.profile.index.stat().st_size, unreadable=len(report.unreadable))

def ours_ask(corpus: Path, work: Path):
    from mimirag import KnowledgeBase
    with KnowledgeBase(work/"mimirag.toml") as kb: return ask(lambda query: [item.path for item in kb.search(query)], corpus)

def ours_resolve(corpus: Path, work: Path):
    from mimirag import KnowledgeBase
    with KnowledgeBase(work/"mimirag.toml") as kb:
        cited = [item.citation for query,_ in questions(corpus) for item in kb.search(query, limit=5)]
        began = time.perf_counter()
        held = sum(kb.resolve(citation).holds for citation in cited)
        return dict(citations=len(cited), held=held, a_second=len(cited)/(time.perf_counter()-began))

def floor_pdf(corpus: Path, work: Path):
    import pymupdf
    pages = 0
    for path in sorted(corpus.rglob("*.pdf")):
        with pymupdf.open(path) as document: pages += sum(1 for page in document if page.get_text() is not None)
    return dict(pages=pages)

def ours_pdf(corpus: Path, work: Path):
    from mimirag.evidence.errors import ExtractionError
    from mimirag.extract.pdf import extract_pdf
    pages = 0
    for path in sorted(corpus.rglob("*.pdf")):
        try: pages += len(extract_pdf(path.read_bytes()).pages)
        except ExtractionError: pass # no page of it has text
    return dict(pages=pages)

def measured(what: str, corpus: Path, work: Path) -> dict:
    "Run one of the functions above in a process of its own"
    before,began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, __file__, "--one", what, str(corpus), str(work)], capture_output=True, text=True)
    after,wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()-began
    if done.returncode: return dict(error=done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}")
    return dict(json.loads(done.stdout), cpu_s=after.ru_utime+after.ru_stime-before.ru_utime-before.ru_stime, wall_s=wall)

def show(name: str, row: dict):
    cells = [f"{key} {value:,.3f}" if isinstance(value, float) else f"{key} {value:,}" if isinstance(value, int) else f"{key}: {value}" for key,value in row.items()]
    print(f"  {name:<26}{'   '.join(cells)}", flush=True)

def touch(corpus: Path, share: float):
    "Change a share of the files"
    for path in files(corpus)[::int(1/share)]: path.write_bytes(path.read_bytes()+b"\n\nA line more.\n")

def bench(corpus: Path):
    print(f"\n{corpus.name}")
    with tempfile.TemporaryDirectory(prefix="mimirag-bench-") as folder:
        work = Path(folder)
        if not files(corpus): return bench_pdf(corpus, work)
        rows = {}
        for what in ["floor_extract", "floor_fts5", "peer_tantivy", "peer_bm25s", "ours", "floor_fts5_ask", "peer_tantivy_ask", "peer_bm25s_ask", "ours_ask", "ours_resolve"]:
            rows[what] = measured(what, corpus, work)
            show(what, rows[what])
        again = rows["again"] = measured("ours", corpus, work)
        show("ours, nothing changed", again)
        copy = work/corpus.name
        shutil.copytree(corpus, copy)
        (work/"copy").mkdir()
        first = measured("ours", copy, work/"copy")
        touch(copy, 0.01)
        changed = measured("ours", copy, work/"copy")
        show("ours, 1 % changed", changed)
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mimirag", "search", "opening a file", "-p", str(work/"mimirag.toml")], stdout=subprocess.DEVNULL, check=True)
        cold = time.perf_counter()-began
        ours,floor,asked = rows["ours"], rows["floor_fts5"], rows["ours_ask"]
        ratios = {"build, CPU, to the floor": ours["cpu_s"]/floor["cpu_s"], "cores used": ours["cpu_s"]/ours["wall_s"], "nothing changed, wall, to a build": again["wall_s"]/ours["wall_s"],
                  "1 % changed, wall, to a build": changed["wall_s"]/first["wall_s"], "index to text": ours["size"]/rows["floor_extract"]["bytes"], "query p50, FTS5 to ours": rows["floor_fts5_ask"]["p50_ms"]/asked["p50_ms"], "cold search, s": cold}
        for name,value in ratios.items(): print(f"  {name:<40}{value:8.2f}")

def bench_pdf(corpus: Path, work: Path):
    rows = {what: measured(what, corpus, work) for what in ("floor_pdf", "ours_pdf", "ours")}
    for what,row in rows.items(): show(what, row)
    for name,what in {"extraction, CPU, to raw text": "ours_pdf", "build, CPU, to raw text": "ours"}.items(): print(f"  {name:<40}{rows[what]['cpu_s']/rows['floor_pdf']['cpu_s']:8.2f}")

def main():
    if sys.argv[1:2]==["--one"]: print(json.dumps(globals()[sys.argv[2]](Path(sys.argv[3]), Path(sys.argv[4]))))
    elif len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir(): sys.exit("bench: there is no folder of corpora; 'make corpora' makes one, or name yours: make bench CORPORA=folder")
    else:
        for corpus in sorted(path for path in Path(sys.argv[1]).resolve().iterdir() if path.is_dir() and (not sys.argv[2:] or path.name in sys.argv[2:])): bench(corpus)

if __name__=="__main__": main()
