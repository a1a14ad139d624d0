#!/usr/bin/env python
"""Searching vectors beside numpy: python tools/bench_vectors.py [FOLDER]

FOLDER holds vectors of a real model: *.npz files with the arrays `vectors` and `queries`. Without it, vectors are made up around subjects. Printed are how many of the true ten
(and hundred) nearest are found by signs and candidates, what an index of 25,000 and of 100,000 costs to search beside a product of matrices over the same numbers, what other forms
of the numbers would cost and lose, and how a file grows when a tenth of it is replaced twenty times.
"""
import os, statistics, sys, tempfile, time
from contextlib import closing
from pathlib import Path
import numpy as np
import mimirag.index.vectors as ours
from mimirag.index.reader import Opened
from mimirag.index.schema import create

def unit(rows): return (rows/np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

def real(folder: Path) -> dict[str, tuple]:
    "Vectors and queries of each file, and of all together"
    found = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            if not {"vectors", "queries"} <= {*file.files}: continue
            rows,queries = file["vectors"], file["queries"]
        if rows.ndim==queries.ndim==2 and len(rows) and len(queries): found[path.stem] = unit(rows.astype(np.float64)), unit(queries.astype(np.float64))
    if len({rows.shape[1] for rows,_ in found.values()})==1: found["all together"] = tuple(map(np.concatenate, zip(*found.values())))
    return found

def made_up(number: int = 20_000, dimension: int = 384) -> dict[str, tuple]:
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, dimension))[random.integers(0, 200, number)]+random.normal(size=(number, dimension))
    return {"made up": (unit(rows), unit(rows[:300]+random.normal(size=(300, dimension))))}

def enlarged(rows, number: int):
    "So many vectors: the given ones, and mixtures of two of them with a little noise"
    random = np.random.default_rng(0)
    one,two,much = random.integers(0, len(rows), number), random.integers(0, len(rows), number), random.uniform(0, 0.5, (number, 1))
    more = unit(rows[one]*(1-much)+rows[two]*much+random.normal(size=(number, rows.shape[1]))*0.01)
    more[:len(rows)] = rows[:number]
    return more

def write(path: Path, rows) -> None:
    with closing(create(path)) as database:
        ours.create_vectors(database, rows.shape[1])
        database.execute("BEGIN")
        ours.put_vectors(database, range(1, len(rows)+1), rows, (n.to_bytes(16, "big") for n in range(len(rows))))
        database.execute("COMMIT")

def shares(rows, queries, most: int = 300) -> dict[int, float]:
    "Of the true nearest 10, 50 and 200, the share that is among the candidates by signs"
    queries = queries[np.random.default_rng(0).permutation(len(queries))[:most]]
    signs,found = np.ascontiguousarray(ours._signs(rows).T), {}
    for limit in (limit for limit in (10, 50, 200) if limit < len(rows)):
        wanted,parts = ours._LEAST+ours._EACH*limit, []
        for query in queries:
            near,far = rows @ query, ours._distances(signs, query)
            which = far <= np.searchsorted(np.bincount(far).cumsum(), wanted)
            parts.append(min(limit, (near[which] >= np.partition(near, -limit)[-limit]).sum())/limit)
        found[limit] = float(np.mean(parts))
    return found

def forms(rows, queries, most: int = 300) -> dict[str, float]:
    "The share of the true ten nearest that whole comparisons of shorter numbers find"
    queries = queries[:most]
    near = queries @ rows.T
    least,scale = -np.partition(-near, 9, axis=1)[:, 9], np.abs(rows).max(1, keepdims=True)/127
    def share(short): return float(np.mean([min(10, (near[n][np.argpartition(-row, 9)[:10]] >= least[n]-1e-7).sum())/10 for n,row in enumerate(queries @ short.T)]))
    return {"float16": share(rows.astype(np.float16).astype(np.float32)), "int8": share(np.rint(rows/scale).astype(np.float32)*scale)}

def spent(work, queries, clock=time.perf_counter) -> list[float]:
    "Milliseconds for each query, by a clock"
    found = []
    for query in queries:
        began = clock()
        work(query)
        found.append((clock()-began)*1e3)
    return found

def speed(folder: Path, rows, queries):
    path,queries = folder/f"{len(rows)}.sqlite", queries[:200]
    began = time.process_time()
    write(path, rows)
    print(f"\n{len(rows):,} x {rows.shape[1]}: written in {time.process_time()-began:.1f} s CPU, {os.path.getsize(path)/1e6:.1f} MB")
    def product(query, limit=10):
        near = rows @ query
        return np.argpartition(near, -limit)[-limit:]
    with closing(Opened(path)) as index:
        began = time.process_time()
        vectors = ours.Vectors(index)
        print(f"  opened, with what is kept in memory: {(time.process_time()-began)*1e3:.1f} ms")
        few = np.arange(1, len(rows)+1, max(1, len(rows)//3))[:3]
        ways = {"product of matrices": product, "10 nearest": lambda query: vectors.search(query, 10), "50 nearest": lambda query: vectors.search(query, 50), "100 nearest": lambda query: vectors.search(query, 100),
                "10 among half": lambda query: vectors.search(query, 10, among=half), "10 among 3": lambda query: vectors.search(query, 10, among=few)}
        half = np.arange(1, len(rows)+1, 2)
        for work in ways.values(): work(queries[0])
        times = {name: ([], []) for name in ways}
        for start in range(0, len(queries), 20): # in turn, so that a busy moment meets all
            for name,work in ways.items():
                work(queries[start]) # what the one before has left behind is over
                times[name][0].extend(spent(work, queries[start:start+10], time.process_time))
                times[name][1].extend(spent(work, queries[start+10:start+20]))
        floor = statistics.median(times["product of matrices"][1])
        for name,(used,taken) in times.items(): print(f"  {name:20} median {statistics.median(taken):7.2f} ms, {statistics.median(taken)/floor:5.2f} of the product; CPU {statistics.median(used):7.2f} ms")
        print(f"  {'exact':20} median {statistics.median(spent(lambda query: vectors.search(query, 10, exact=True), queries[:10])):7.2f} ms")
        same = [len({hit.passage for hit in vectors.search(query, 10)} & {hit.passage for hit in vectors.search(query, 10, exact=True)}) for query in queries[:50]]
        print(f"  of the exact ten {sum(same)/len(same)/10:.4f} found")

def growth(folder: Path, rows, rounds: int = 20):
    path,random = folder/"growth.sqlite", np.random.default_rng(0)
    write(path, rows)
    sizes = [os.path.getsize(path)]
    import apsw
    for _ in range(rounds):
        with closing(apsw.Connection(str(path))) as database:
            database.execute("BEGIN")
            ids = (random.permutation(len(rows)//20)[:len(rows)//200, None]*20+np.arange(1, 21)).ravel()
            ours.drop_vectors(database, ids)
            ours.put_vectors(database, ids, rows[ids-1], [b"key"]*len(ids))
            database.execute("COMMIT")
        sizes.append(os.path.getsize(path))
    print(f"\n{len(rows):,} vectors, a tenth replaced {rounds} times: {sizes[0]/1e6:.1f} MB at first, {max(sizes)/1e6:.1f} MB at most, {sizes[-1]/1e6:.1f} MB at the end")

def main():
    sets = real(Path(sys.argv[1])) if sys.argv[1:] else made_up()
    if not sets: sys.exit("bench_vectors: no *.npz with vectors and queries there")
    print("share of the nearest found by signs, of 10, 50 and 200; and by whole comparisons of shorter numbers, of 10")
    for name,(rows,queries) in sets.items():
        print(f"  {name:24} {len(rows):7,}  "+"  ".join(f"{limit}: {share:.4f}" for limit,share in shares(rows, queries).items())+"   "+"  ".join(f"{form} {share:.4f}" for form,share in forms(rows, queries).items()), flush=True)
    rows,queries = max(sets.values(), key=lambda one: len(one[0]))
    with tempfile.TemporaryDirectory(prefix="mimirag-bench-") as folder:
        for number in (25_000, 100_000): speed(Path(folder), enlarged(rows, number), queries)
        growth(Path(folder), rows[:20_000])

if __name__=="__main__": main()
