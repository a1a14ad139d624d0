"""Are the words that people quoted from pages of manuals on those pages as they are extracted? Asked of the set `manual_pdf` under $MIMIRAG_DATA

`python tests/test_pdf_quotes.py` prints the measures, and every quote with a word that is missing."""
import json, os, re
from collections import defaultdict
from functools import cache
from pathlib import Path
import pytest
from mimirag.index.words import tokens

FOLDER = Path(os.environ.get("MIMIRAG_DATA", "nowhere"))/"manual_pdf"
_ENVIRONMENT = re.compile(r"(?:\\b|\x08|\b)(?:b?egin|end)\{\w+\}(?:\{[^}]*\}+)?|\\multicolumn\{\d\}\{[^}]*\}")
_COMMAND = re.compile(r"\\[a-zA-Z]+\*?|\t(?:ext|riangle(?:right)?|imes)\b|[\x08]\w+|(?<=\$)riangle(?:right)?")

def without_markup(quote: str) -> str:
    "The quotes were written by a model in LaTeX, some with the first letter of a command eaten by an escape (`\\text` as a tab and `ext`)"
    return _COMMAND.sub(" ", _ENVIRONMENT.sub(" ", quote))

@cache
def pages(name: str):
    from mimirag.extract.pdf import extract_pdf
    return extract_pdf((FOLDER/"files"/f"{name}.pdf").read_bytes()).pages

def squeezed(text: str) -> str: return re.sub(r"[\W_]+", "", text).casefold()

def measure() -> dict:
    "Shares of the quotes whose words are all on the page, and lists of words that are not; pages without a text layer are left out"
    gold = defaultdict(list)
    for row in (FOLDER/"qrels.tsv").read_text().splitlines()[1:]:
        query,page,grade = row.split("\t")
        if int(grade): gold[query].append(page.split("#page="))
    asked,found,words,order,missing = 0,0,0,0,[]
    for row in map(json.loads, (FOLDER/"queries.jsonl").read_text().splitlines()):
        text = "\n".join(pages(name)[int(page)-1].text for name,page in gold[row["id"]])
        if not text.strip() or not row["meta"].get("evidence"): continue
        quote,(here,names) = tokens(without_markup(row["meta"]["evidence"]))[0], tokens(text)
        together = squeezed(text)
        lost = [n for n,word in enumerate(quote) if word not in {*here, *names}]
        asked += 1
        words += not lost
        unfound = [quote[n] for n in lost if not any(squeezed("".join(part)) in together for part in (quote[n:n+1]*(len(quote[n]) > 3), quote[n:n+2], quote[max(n-1, 0):n+1]) if len(part))] # `10 TCLCL` for what is printed as `10TCLCL`
        found += not unfound
        order += " ".join(quote) in " ".join(here)
        if lost: missing.append((gold[row["id"]], [quote[n] for n in lost], unfound))
    return dict(asked=asked, found=found/asked, words=words/asked, in_order=order/asked, missing=missing)

@pytest.mark.skipif(not FOLDER.is_dir(), reason="$MIMIRAG_DATA has no set manual_pdf")
def test_quotes_are_on_their_pages():
    pytest.importorskip("pymupdf")
    assert (result := measure())["found"] >= 0.9, result["missing"]

if __name__=="__main__":
    result = measure()
    for line in result.pop("missing"): print(*line)
    print(result)
