"""Measured on public sets, through the ordinary path: no lower than a plain lexical reference.

The reference is SQLite FTS5 (`porter unicode61`, OR of the query's words less stopwords) or bm25s, whichever is better, run over the sets' own
passages. The figures are of the sets' open halves. Prints what was measured: pytest -s tests/test_sets.py
"""
import pytest
from mimirag.lab.eval import evaluate

REFERENCE = dict(northwind_pdf=0.695, manual_pdf=0.911, cookbook_docs=0.791, scifact=0.702) # nDCG@10

@pytest.mark.sets
@pytest.mark.parametrize("name", REFERENCE)
def test_no_lower_than_the_reference(sets, name):
    if name.endswith("_pdf"): pytest.importorskip("pymupdf")
    report = evaluate(sets/name)
    print(name, report["metrics"], report["latency_ms"])
    assert report["metrics"]["nDCG@10"] >= REFERENCE[name]
