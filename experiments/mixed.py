"""A knowledge base of documents and records, and cases about both, from two public sets.

    python experiments/mixed.py FOLDER DOCUMENTS RECORDS       as: experiments/build/mixed cookbook_docs lihua_world

The texts of one set become files, those of the other records; the questions of both become cases. A perfect fusion would find for each question
what its own set alone gives. The sets are looked for in the folder that MIMIRAG_DATA names; what is written is theirs, and is not committed.
"""
import json, os, shutil, sys
from pathlib import Path
from mimirag.lab.measures import relevant
from mimirag.lab.sets import EvalSet, lay_out, read_set

def cases(wanted: EvalSet, source: str, places: dict[str, str]) -> list[dict]:
    "The answerable questions of a set; a whole file, or a record, is what answers"
    texts = {row["id"]: " ".join(row["text"].split())[:60] or row["title"] for row in wanted.corpus}
    types,judged = {row["id"]: row["text"] for row in wanted.queries}, relevant(wanted.qrels)
    return [dict(id=f"{wanted.name}-{query}", type=wanted.name, question=types[query], gold=[dict(source=source, path=places[id], quote=texts[id]) for id in judged[query]]) for query in types if query in judged]

def make(folder: Path, documents: str, records: str) -> Path:
    "Write the knowledge base and its cases; gives back the file of cases"
    data = Path(os.environ.get("MIMIRAG_DATA") or sys.exit("set MIMIRAG_DATA to the folder with the public evaluation sets"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files,rows = read_set(data/documents), read_set(data/records)
    root,targets = lay_out(files, folder)
    places = {row["id"]: path for path,found in targets.rows.items() for row in found}
    (folder/"records.jsonl").write_text("".join(json.dumps(dict(id=row["id"], title=row["title"] or "", text=row["text"]), ensure_ascii=False)+"\n" for row in rows.corpus), "utf-8")
    (folder/"mimirag.toml").write_text(f'[[source]]\nid = "documents"\nkind = "documents"\nroot = "{root.relative_to(folder)}"\n[[source]]\nid = "records"\nkind = "records"\nstore = "jsonl"\npath = "records.jsonl"\n[limits]\nrecord_seconds = 60.0\n')
    found = cases(files, "documents", places)+cases(rows, "records", {row["id"]: row["id"] for row in rows.corpus})
    (folder/"cases.jsonl").write_text("".join(json.dumps(case, ensure_ascii=False)+"\n" for case in found), "utf-8")
    return folder/"cases.jsonl"

if __name__=="__main__": print(make(Path(sys.argv[1]), *sys.argv[2:4]))
