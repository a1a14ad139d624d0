"Kinds of queries that people type, over small collections: each returns, finds what it must and not what it must not"
import time
import pytest
from mimirag.evidence.errors import UsageError

def paths(reply): return [item.path.removesuffix(".txt") for item in reply]

@pytest.fixture
def texts(kb_of):
    return lambda *lines: kb_of({f"d{n}.txt": line+"\n" for n,line in enumerate(lines, 1)})

def test_technical_terms_are_not_syntax(texts):
    kb = texts("The peer-review board meets first.", "The parser is written in C++ and Rust.", "Requires node.js version 18.", "Throughput reached 80 MB/s on tape.", "Clients can't retry on error 417.",
               "Set the flag mode:strict in the header.", "Tested on Debian 12.5 and 11.9.", 'He wrote "unbalanced quotes in the log.', "Call foo(bar) before baz.", "The state-of-the-art method, as of May.")
    wanted = {"peer-review": "d1", "C++": "d2", "node.js": "d3", "MB/s": "d4", "can't": "d5", "mode:strict": "d6", "debian 12.5": "d7", '"unbalanced': "d8", "foo(bar)": "d9", "state-of-the-art": "d10", "error 417, retry": "d5"}
    for query,path in wanted.items(): assert paths(kb.search(query))[0]==path, query

@pytest.mark.parametrize("query", ["", "   \t\n", "!!! ??? ...", '""', "\x00", "\ud800", "'; DROP TABLE words; --", "NEAR(", "title: *", "^", "a AND", "(" * 5000, "-", "*", '"' * 999])
def test_nothing_breaks_a_search(texts, query):
    reply = texts("The answer of the day.").search(query)
    assert reply.outcome in ("not_searched", "none", "found", "weak") and (reply.items or reply.outcome!="found")
    if not query.strip(' \t\n!?."()-*^\x00\ud800'): assert reply.outcome=="not_searched" and reply.scope.notes

def test_common_words_alone(texts):
    kb = texts("The answer of the day.", "To be or not to be.")
    assert paths(kb.search("to be or not to be"))==["d2"] and paths(kb.search("the of and"))==["d1"]

def test_long_queries(texts):
    kb = texts("The cassowary clause stands alone.", "Filler text without it.")
    began = time.monotonic()
    long = kb.search("cassowary "+" ".join(f"word{n:05d}" for n in range(20_000)))
    assert paths(long)==["d1"] and any("were used" in note for note in long.scope.notes)
    assert paths(kb.search("cassowary"+"("*5000))==["d1"] and paths(kb.search(" OR ".join(["cassowary"]*3000)))==["d1"]
    assert not kb.search("x"*1_000_000).items and time.monotonic()-began < 5

def test_chinese_japanese_korean(texts):
    kb = texts("备份任务每晚运行一次。", "ログの保存期間は三十日です。", "백업 서버를 두 대 운영한다.", "密钥轮换周期为九十天。")
    for query,path in {"任务": "d1", "备份任务": "d1", "保存": "d2", "保存期間": "d2", "백업": "d3", "密钥": "d4", "密钥轮换": "d4", "備": None, "钥": "d4", "密": "d4", "三十日": "d2", "ログ": "d2", "서버": "d3"}.items():
        assert paths(kb.search(query))[:1]==([path] if path else []), query
    assert "d4" not in paths(kb.search("任务")) and "d1" not in paths(kb.search("密钥"))

def test_names_in_code(texts):
    kb = texts("def fetchTideHeight(self): return self._h", "min_depth_limit = 5  # lower bound", "class XMLFeed(Base): pass", "The height of the tide was measured.", "see .NET and --dry-run, v1.0.21")
    for query,top in {"fetchTideHeight": "d1", "min_depth_limit": "d2", "XMLFeed": "d3", "minDepthLimit": "d2", ".NET": "d5", "--dry-run": "d5", "1.0.21": "d5", "fetch_tide_height": "d1"}.items(): assert paths(kb.search(query))[0]==top, query
    assert set(paths(kb.search("tide height")))=={"d1", "d4"} and paths(kb.search("depth limit"))==["d2"] and paths(kb.search("xml feed"))==["d3"]

def test_scores_and_order_agree(texts):
    kb = texts("gannet plover heron gannet plover heron", "gannet is mentioned once in a long paragraph about many other birds and many other things that take up space",
               "plover and heron stand here with several more words around them for length", "nothing relevant at all in this text", "another unrelated text about weather", "a third unrelated text about tides")
    reply = kb.search("gannet plover heron")
    scores = [item.score for item in reply]
    assert paths(reply)[0]=="d1" and set(paths(reply))=={"d1", "d2", "d3"} and scores==sorted(scores, reverse=True) and len(set(scores))==3 and min(scores) > 0

def test_control_characters_in_a_query(texts):
    kb = texts("The osprey rule.")
    for query in ["osprey\x00", "osprey\x07", "osprey \ud800", "os\u00adprey", "\u202eosprey"]: assert paths(kb.search(query))==["d1"], repr(query)

REFUSED = [(dict(limit=0), "limit: 0 is not allowed; allowed: 1 to 1000"), (dict(limit=1001), "1 to 1000"), (dict(limit="3"), "limit"), (dict(sources="none"), "allowed: docs"), (dict(kinds="tapes"), "allowed: documents"),
           (dict(paths="/etc"), "outside the root"), (dict(paths=[]), "paths: give a text"), (dict(sources=3), "sources: give a text"), (dict(since="2024-02-30"), "YYYY-MM-DD"), (dict(since="soon"), "YYYY-MM-DD"), (dict(pipeline="magic"), "allowed: lexical"), (dict(query=None), "query: a query is text")]

@pytest.mark.parametrize("arguments,says", REFUSED)
def test_arguments_that_cannot_be_meant(texts, arguments, says):
    with pytest.raises(UsageError) as refused: texts("x").search(**{"query": "x", **arguments})
    assert says in str(refused.value)

def test_filters_and_counts(kb_of):
    kb = kb_of({"guide/a.md": "# A\n\nThe plover rule.\n", "guide/b.md": "# B\n\nThe plover too.\n", "log/c.txt": "plover seen\n", "log/empty.txt": "", "log/scan.pdf": b"%PDF-1.7 broken"})
    reply = kb.search("plover", paths=["guide/*"])
    assert set(paths(reply))=={"guide/a.md", "guide/b.md"} and (reply.scope.eligible, reply.scope.searched, reply.scope.unreadable)==(2, 2, 0)
    assert kb.search("plover", kinds="code").outcome=="not_searched" and kb.search("plover").scope.unreadable==1
    assert kb.search("plover", paths="nothing/*").outcome=="not_searched"
    assert kb.search("walrus", paths="guide/*").outcome=="none" and kb.search("walrus").outcome=="degraded"

def test_every_hit_explains_itself(texts):
    item = texts("The relief valve opens at 6.2 bar.", "Another pump.").search("opening valve pressure")[0]
    assert item.terms==("opening", "valve") and [item.text[a:b] for a,b in item.marks]==["valve", "opens"] and item.channels["lexical"].rank==1

@pytest.mark.parametrize("query,paths", [
    ('"foo-bar"', ["a.md"]), ('"foo bar"', ["b.md"]), ('“foobar”', ["c.md"]), ('"1.0.2"', ["b.md"]), ('"the first day"', ["d.md"]), ('"备份任务"', ["e.md"]), ('"FIRST Day"', ["d.md"]),
    ('"foo-bar" "alpha"', ["a.md"])])
def test_quoted_words_stand_as_written(kb_of, query, paths):
    kb = kb_of({"a.md": "alpha foo-bar\n", "b.md": "A foo, bar 1.0.2.\n", "c.md": "foobar 1.0.21\n", "d.md": "On the first\nday, the limit.\n", "e.md": "系统备份任务失败\n", "f.md": "A day, the first: limit. 任务备份\n"})
    reply = kb.search(query)
    assert [item.path for item in reply]==paths and reply.outcome=="found"

def test_quoted_words_beside_others_come_first(kb_of):
    kb = kb_of({"a.md": "Tide tables, tide tables; the tide of the first day.\n", "b.md": "A long text on many matters of the sea, in which the high tide is named only once, among other things.\n"})
    reply = kb.search('tide tables of the "high tide"')
    assert [item.path for item in reply]==["b.md", "a.md"] and reply[0].score > reply[1].score and reply.outcome=="found"

def test_quoted_words_that_stand_nowhere(kb_of):
    "Their words are looked for, and the reply says what it is"
    kb = kb_of({"a.md": "The valve of the pump.\n", "b.md": "A pump.\n"})
    reply = kb.search('"pump valve"')
    assert reply.outcome=="weak" and {item.path for item in reply}=={"a.md", "b.md"} and "no passage holds “pump valve” as written" in reply.scope.notes[0]
    assert kb.search('"zebra quagga"').outcome=="none" and kb.search('12" of "water').outcome!="not_searched"
    assert kb.search('"pump \ud800valve" \x1b[31m').scope.notes

@pytest.mark.parametrize("query,paths", [
    ('"to be" zebra', ["a.md", "c.md"]), ('"to be" hamlet', ["a.md", "c.md"]), ('"한국어 문서"', ["k.md"]), ('"東京、大阪"', ["j.md"]), ('"中"', ["m.md"]), ('"GitHub Actions"', ["g.md"]),
    ('"configuration file"', ["n.md"]), ('"my report"', ["my report.txt"]), ('"s" hamlet', []), ('"'+"a"*200+'"', [])])
def test_quoted_words_of_all_kinds(kb_of, query, paths):
    kb = kb_of({"a.md": "To be or not to be, hamlet.\n", "c.md": "It has to be here.\n", "k.md": "한국어 문서 검색\n", "j.md": "東京、大阪と京都\n", "m.md": "其中一个\n", "g.md": "Use github actions.\n",
                "n.md": "See the configu-\nration file.\n", "my report.txt": "All is well.\n"})
    reply = kb.search(query)
    assert sorted(item.path for item in reply)[:len(paths)]==paths if paths else reply.scope.notes

def test_quoted_words_tie_by_place(kb_of):
    "However the index came about"
    kb = kb_of({f"f{n:03}.txt": f"quick fox unique{n:03}\n" for n in range(80, 160)})
    for n in range(80): (kb.profile.root("docs")/f"f{n:03}.txt").write_text(f"quick fox unique{n:03}\n")
    kb.build(workers=1)
    assert [item.path for item in kb.search('"quick fox"', limit=4)]==[f"f{n:03}.txt" for n in range(4)]
