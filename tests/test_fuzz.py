"Anything at all as the bytes of a file: an extraction that keeps its promises, or a reason"
from collections import Counter
import pytest
from hypothesis import given, settings, strategies as st
from mimirag.evidence.citation import Citation, find_citations
from mimirag.evidence.errors import CitationError, ExtractionError, MimiRAGError
from mimirag.evidence.text import Span, split_lines
from mimirag.extract.chunks import Sizes, chunks
from mimirag.extract.readers import extract
from mimirag.extract.rst import rst_blocks
from mimirag.index.words import Marker, bag, query_terms, tokens

MARKUP = ["# ", "## ", "===\n", "---\n", "```\n", "~~~", "    ", "\t", "> ", "- ", "1. ", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\u2028", "\0", "<div>", "</p>", "<!--", "-->", "<table><tr><td>", "<pre>", "&amp;", "&#0;", ".. note::\n", "::\n\n",
          ":role:`x`", "+---+\n", "=== ===\n", "|", "[a](b)", "[x]: y\n", "word", "Wörter", "検査", "a-b_c.d", "configu-\nration", "\xad\n", "\ufeff", "---\ntitle: x\n---\n", "\U0001f600", "e\u0301"]
documents = st.one_of(st.lists(st.sampled_from(MARKUP), max_size=40).map("".join), st.text(max_size=200))

def promises(path: str, data: bytes):
    "What an extraction promises, whatever it was made from"
    try: found = extract(path, data)
    except ExtractionError as refused:
        assert str(refused) and "\n" not in str(refused)
        return
    assert extract(path, data).name==found.name, "the same bytes give the same text"
    sizes = Sizes(target=60, least=10, line=120, page=80)
    for page,lines in enumerate(found.lines, 1):
        covered = [n for block in found.pages[page-1].blocks for n in range(block.first, block.last+1)]
        assert len(covered)==len(set(covered)) and {n for n,line in enumerate(lines, 1) if line.strip()} <= set(covered) and max(covered, default=0) <= len(lines)
    made = list(chunks(found, sizes))
    assert len({chunk.span for chunk in made})==len(made) and made
    for chunk in made:
        assert chunk.text==found.text_at(chunk.span) and chunk.text.strip()
        tokens(chunk.words)
    content = {(page, n) for page,own in enumerate(found.pages, 1) for block in own.blocks if block.kind!="meta" for n in range(block.first, block.last+1) if found.lines[page-1][n-1].strip()}
    assert content <= {(chunk.span.page or 1, n) for chunk in made for n in range(chunk.span.first, chunk.span.last+1)}

@pytest.mark.parametrize("ending", ["md", "rst", "html", "txt"])
@given(text=documents)
@settings(max_examples=250)
def test_text_formats(ending, text): promises(f"a.{ending}", text.encode("utf-8", "surrogatepass"))

@pytest.mark.parametrize("ending", ["md", "rst", "html", "txt", "pdf"])
@given(data=st.binary(max_size=300))
@settings(max_examples=80)
def test_any_bytes(ending, data):
    if ending=="pdf": pytest.importorskip("pymupdf")
    promises(f"a.{ending}", data)

@given(place=st.integers(0, 5000), data=st.binary(max_size=8), cut=st.integers(0, 3000))
@settings(max_examples=150)
def test_damaged_pdfs(place, data, cut):
    pytest.importorskip("pymupdf")
    from make_pdfs import relief_valve
    whole = relief_valve()
    place %= len(whole)
    promises("a.pdf", (whole[:place]+data+whole[place+len(data):])[:len(whole)-cut if cut % 3==0 else None])

@given(text=documents)
@settings(max_examples=300)
def test_sections_are_those_of_docutils(text):
    "Where docutils accepts a document's structure, our line map has its titles, at its lines"
    from docutils import nodes
    from docutils.core import publish_doctree
    text = "".join(char for char in text.replace("\r\n", "\n") if char not in "\r\x0b\x0c\u2028\0\ufeff\x1c\x1d\x1e\x85\u2029")
    tree = publish_doctree(text, settings_overrides=dict(report_level=5, halt_level=6, file_insertion_enabled=False, raw_enabled=False, _disable_config=True, doctitle_xform=False))
    if any(message["level"] >= 3 for message in tree.findall(nodes.system_message)) or tree.parse_messages: return # it had to guess
    theirs = [node.line-1 for node in tree.findall(nodes.title) if isinstance(node.parent, nodes.section)]
    assert [block.line for block in rst_blocks(split_lines(text)) if block.kind=="heading"]==theirs

@given(text=documents)
@settings(max_examples=300)
def test_headings_are_those_of_commonmark(text):
    "The headings of our Markdown blocks are those of the parser run on the same text"
    from markdown_it import MarkdownIt
    text = "".join(char for char in text if char not in "\r\0\ufeff")
    if text.startswith(("---", "+++")): return
    found = [(token.map[0]+1, int(token.tag[1])) for token in MarkdownIt("commonmark").enable("table").parse(text) if token.type=="heading_open" and token.level==0]
    try: blocks = extract("a.md", text.encode("utf-8", "replace")).pages[0].blocks
    except ExtractionError: return
    assert [(block.line, block.level) for block in blocks if block.kind=="heading"]==found

@given(text=documents, query=st.one_of(documents, st.text(max_size=40)))
@settings(max_examples=300)
def test_words_of_queries_and_marks(text, query):
    terms,_ = query_terms(query, 50)
    found = Marker(terms)(text)
    assert all(0 <= start < end <= len(text) for start,end,_ in found) and all(a[1] <= b[0] for a,b in zip(found, found[1:]))
    asked = {term.token for term in query_terms(text, 10_000)[0]}
    parts,names = tokens(text)
    assert asked <= {*parts, *names} or not asked, "what a document would be asked with is in its words"
    assert bag(text)==tuple(dict(Counter(found)) for found in (parts, names)), "counting quickly counts the same"

@given(st.text(max_size=300))
@settings(max_examples=300)
def test_parsing_citations(text):
    try: assert str(Citation.parse(text))==text
    except CitationError as refused: assert isinstance(refused, MimiRAGError)
    assert all(text[at:at+len(found)]==found for at,found in find_citations(text))

sources = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
paths = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12).filter(lambda part: part not in (".", "..")), min_size=1, max_size=4).map("/".join)
numbers = st.integers(1, 10**6)

@given(source=sources, path=paths, first=numbers, more=st.integers(0, 50), page=st.none() | numbers, digest=st.from_regex("[0-9a-f]{64}", fullmatch=True))
@settings(max_examples=300)
def test_citations_read_back(source, path, first, more, page, digest):
    cited = Citation(kind="doc", version=digest, source=source, path=path, extract=f"text/1:{digest}", span=Span(first, first+more, page), text=digest)
    assert Citation.parse(str(cited))==cited and Citation.model_validate_json(cited.model_dump_json())==cited
    assert [found for _,found in find_citations(f"({cited}) and <{cited}>.")]==[str(cited)]*2
