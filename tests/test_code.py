"Code at pinned commits: repositories as strangers send them, and what becomes of citations when history moves"
import hashlib, json, os, random, resource, shutil, subprocess, sys, time, zlib
from pathlib import Path
import pytest
from hypothesis import given, strategies as st
from mimirag.doctor import examine
from mimirag.evidence.citation import Citation
from mimirag.evidence.errors import ExtractionError, MimiRAGError, ProfileError, SourceError, UsageError
from mimirag.evidence.interchange import swhid
from mimirag.evidence.text import Span, text_hash
from mimirag.extract.code import decode_source, extract_code
from mimirag.index.reader import Index
from mimirag.retrieve.knowledge import KnowledgeBase
from mimirag.sources.git import Objects, commit_of, object_id, open_repository
from mimirag.sources.profile import Code
from mimirag.sources.tree import list_blobs

FIXED = dict(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1", GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@example.org", GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@example.org",
             GIT_AUTHOR_DATE="2024-01-01T00:00:00Z", GIT_COMMITTER_DATE="2024-01-01T00:00:00Z", GIT_ALLOW_PROTOCOL="file")

class Repo:
    "A repository for a test, and a profile beside it"
    def __init__(self, folder: Path, *init: str):
        self.folder,self.home,self.opened = folder, folder.parent, []
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init)

    def git(self, *arguments, **more) -> str: return self.bytes(*arguments, **more).decode("utf-8", "surrogateescape").strip()
    def bytes(self, *arguments, **more) -> bytes: return subprocess.run(["git", "-C", self.folder, *arguments], check=True, capture_output=True, env=os.environ|FIXED, **more).stdout

    def commit(self, files: dict, message: str = "Work") -> str:
        "Write files (`None` deletes) and commit all"
        for name,content in files.items():
            path = self.folder/name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None: path.unlink()
            else: path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def kb(self, more: str = "", repo: Path|None = None, ref: str = "main", id: str = "engine", name: str = "mimirag.toml") -> KnowledgeBase:
        (self.home/name).write_text(f'[profile]\nindex = "{name}.sqlite"\n[[source]]\nid = "{id}"\nkind = "code"\nrepo = {json.dumps(str(repo or self.folder))}\nref = "{ref}"\n{more}\n')
        self.opened.append(KnowledgeBase(self.home/name))
        return self.opened[-1]

@pytest.fixture
def repo(tmp_path):
    made = Repo(tmp_path/"engine")
    yield made
    for kb in made.opened: kb.close()

VALVE = 'import sys\n\nclass Valve:\n    "A relief valve"\n    def opens_at(self):\n        return 350\n'

def git_processes() -> set[str]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try: words = (process/"cmdline").read_bytes().split(b"\0")
        except OSError: continue
        if os.path.basename(words[0])==b"git" and any(word.startswith(b"--git-dir=") for word in words) and (process/"stat").read_text().split(")")[1].split()[1]==str(os.getpid()): found.add(process.name)
    return found

# --- A repository is data, not instructions

HOSTILE = ["--output=PWNED", "--upload-pack=touch PWNED", "-q", "HEAD --exec=x", "main\\n--output=PWNED", "@{upstream}--", "--help"]

@pytest.mark.parametrize("ref", HOSTILE)
def test_refs_are_never_options(repo, ref):
    repo.commit({"a.py": "x = 1\n"})
    with pytest.raises(ProfileError, match="is not a name"): repo.kb(ref=ref)

@pytest.mark.parametrize("place", ["ext::sh -c touch% PWNED", "--upload-pack=touch PWNED", "file:///nonexistent", "ssh://-oProxyCommand=touch PWNED/x", "https://example.org/x.git", "git@example.org:x/y"])
def test_only_folders_are_repositories(repo, place):
    try: kb = repo.kb(repo=place)
    except ProfileError as error: assert "is not a folder" in str(error)
    else: assert "no such folder" in kb.build().unreadable[0].reason
    assert not list(repo.home.rglob("PWNED"))

@pytest.mark.parametrize("path", ["--output=PWNED", ":(top,exclude)x.md", "-x.md", "../engine/a.py", "/etc/passwd", ".git/config", "a.py/x"])
def test_paths_are_never_options(repo, path):
    repo.commit({"a.py": "x = 1\n", "-x.md": "# X\n"})
    kb = repo.kb()
    kb.build(workers=1)
    if path=="-x.md": assert kb.read_path("engine", path).text=="# X"
    else:
        with pytest.raises(UsageError): kb.read_path("engine", path)
    assert not list(repo.home.rglob("PWNED"))

def test_nothing_of_a_repository_is_run(repo, monkeypatch):
    repo.commit({"q.md": "# Q\n\nQuiet text.\n", ".gitattributes": "*.md filter=evil diff=evil\n"})
    repo.commit({"gone.md": "# Gone\n\nOf a partial clone.\n"})
    touch = lambda name: f"sh -c 'touch \"{repo.home}/pwned-{name}\"' --"
    for key in ["core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "credential.helper", "core.editor", "core.askPass", "core.gitProxy", "core.alternateRefsCommand", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process",
                "diff.evil.textconv", "diff.evil.command", "gpg.program", "uploadpack.packObjectsHook", "alias.cat-file", "trace2.eventTarget", "remote.origin.uploadpack", "remote.origin.vcs"]: repo.git("config", key, touch(key.replace(".", "-")))
    hooks = repo.folder/".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-auto-gc", "post-index-change", "reference-transaction", "proc-receive"):
        (hooks/name).write_text(f"#!/bin/sh\ntouch '{repo.home}/pwned-{name}'\n")
        os.chmod(hooks/name, 0o755)
    lost = repo.git("rev-parse", "HEAD:gone.md") # a partial clone, whose remote would be asked
    (repo.folder/f".git/objects/{lost[:2]}/{lost[2:]}").unlink()
    for key,value in {"core.repositoryformatversion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": f"ext::{touch('fetch')}", "protocol.ext.allow": "always"}.items(): repo.git("config", key, value)
    for name,value in {"GIT_DIR": "/nonexistent", "GIT_OBJECT_DIRECTORY": "/nonexistent", "GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='touch pwned'", "GIT_EXTERNAL_DIFF": touch("environment"), "GIT_TRACE": str(repo.home/"pwned-trace")}.items(): monkeypatch.setenv(name, value)
    kb = repo.kb()
    report = kb.build(workers=1)
    assert {item.path: item.reason for item in report.unreadable}["gone.md"].startswith("its content is not in the repository")
    item = kb.search("quiet text")[0]
    assert kb.resolve(item).holds and kb.read(item).origin=="original" and kb.grep("Quiet")[0].text=="Quiet text." and kb.status().sources
    gone = item.citation.model_copy(update=dict(path="gone.md", blob=lost))
    assert kb.resolve(gone).integrity=="version_unavailable"
    assert not list(repo.home.rglob("*pwned*"))

def test_another_owner(repo):
    repo.commit({"a.md": "# A\n\nOwned by another.\n"})
    if os.geteuid(): pytest.skip("only root can give files away")
    for path in [repo.folder, *repo.folder.rglob("*")]: os.chown(path, 12345, 12345, follow_symlinks=False)
    assert subprocess.run(["git", "-C", repo.folder, "status"], capture_output=True, env=os.environ|FIXED).returncode # git itself declines
    kb = repo.kb()
    kb.build(workers=1)
    assert kb.resolve(kb.search("owned")[0]).holds

def test_objects_of_others_are_not_reached(repo, tmp_path):
    secret = Repo(tmp_path/"secret")
    commit = secret.commit({"s.md": "# S\n\nSENTINEL\n"})
    objects = secret.folder/".git/objects"
    def fresh(name):
        made = Repo(tmp_path/name)
        made.commit({"a.md": "# A\n"})
        (made.folder/".git/refs/heads/main").write_text(commit+"\n")
        return made.folder
    alternates,linked,gitfile,common,pack = map(fresh, ["alternates", "linked", "gitfile", "common", "pack"])
    (alternates/".git/objects/info").mkdir(exist_ok=True)
    (alternates/".git/objects/info/alternates").write_text(f"{objects}\n")
    shutil.rmtree(linked/".git/objects"); (linked/".git/objects").symlink_to(objects)
    shutil.rmtree(gitfile/".git"); (gitfile/".git").write_text(f"gitdir: {secret.folder}/.git\n")
    (common/".git/commondir").write_text(f"{secret.folder}/.git\n")
    for folder in objects.iterdir():
        if len(folder.name)==2 and not (pack/".git/objects"/folder.name).exists(): (pack/".git/objects"/folder.name).symlink_to(folder)
    for folder in (alternates, linked, gitfile, common, pack):
        kb = repo.kb(repo=folder, name=f"{folder.name}.toml")
        report = kb.build(workers=1)
        assert not report.documents and len(report.unreadable)==1 and report.unreadable[0].reason, folder
        assert kb.status().sources[0].state=="unavailable"
        cited = Citation(kind="code", version=commit, source="engine", path="s.md", blob=secret.git("rev-parse", "main:s.md"), span=Span(3, 3), text=text_hash("SENTINEL"))
        verdict = kb.resolve(cited)
        assert verdict.integrity=="source_unavailable" and verdict.text is None
        with pytest.raises(MimiRAGError): kb.read_path("engine", "s.md")

def test_a_single_object_may_be_a_link(repo, tmp_path):
    "Or a folder of objects within, with a link in it"
    secret = Repo(tmp_path/"secret")
    commit = secret.commit({"s.md": "# S\n\nSENTINEL\n"})
    def stranger(name):
        made = Repo(tmp_path/name)
        made.commit({"a.md": "# A\n"})
        (made.folder/".git/refs/heads/main").write_text(commit+"\n")
        return made.folder/".git"
    single,within = stranger("single"), stranger("within")
    for path in (secret.folder/".git/objects").glob("??/*"):
        (single/"objects"/path.parent.name).mkdir(exist_ok=True)
        (single/"objects"/path.parent.name/path.name).symlink_to(path)
    secret.git("gc", "-q")
    (within/"more").mkdir()
    (within/"more/pack").symlink_to(secret.folder/".git/objects/pack")
    (within/"objects/info").mkdir(exist_ok=True)
    (within/"objects/info/alternates").write_text("../more\n")
    cited = Citation(kind="code", version=commit, source="engine", path="s.md", blob=secret.git("rev-parse", f"{commit}:s.md"), span=Span(3, 3), text=text_hash("SENTINEL"))
    for folder in (single, within):
        kb = repo.kb(repo=folder.parent, name=f"{folder.parent.name}.toml")
        report = kb.build(workers=1)
        assert not report.documents and len(report.unreadable)==1 and (folder is single or "is a link to" in report.unreadable[0].reason)
        assert kb.resolve(cited).integrity in ("source_unavailable", "version_unavailable") and kb.resolve(cited).text is None
        with pytest.raises(MimiRAGError): kb.read_path("engine", "s.md")

def test_alternates_inside_are_followed(repo):
    commit = repo.commit({"a.md": "# A\n\nBorrowed within.\n"})
    git = repo.folder/".git"
    (git/"more/info").mkdir(parents=True)
    for name in os.listdir(git/"objects"):
        if len(name)==2: shutil.move(git/"objects"/name, git/"more"/name)
    (git/"objects/info").mkdir(exist_ok=True)
    (git/"objects/info/alternates").write_text("../more\n")
    kb = repo.kb()
    assert kb.build(workers=1).documents==1 and kb.search("borrowed")[0].citation.version==commit
    (git/"more/info/alternates").write_text("/somewhere/else\n")
    assert "borrows objects" in kb.build(workers=1).unreadable[-1].reason

def test_replacements_and_grafts_change_nothing(repo):
    commit = repo.commit({"a.md": "# A\n\nThe limit is 10.\n"})
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("limit")[0]
    forged = repo.git("hash-object", "-w", "--stdin", input=b"# A\n\nThe limit is 99.\n")
    other = repo.commit({"a.md": "# A\n\nThe limit is 77.\n"})
    repo.git("reset", "-q", "--hard", commit)
    repo.git("replace", item.citation.blob, forged)
    repo.git("replace", commit, other)
    (repo.folder/".git/info").mkdir(exist_ok=True)
    (repo.folder/".git/info/grafts").write_text(f"{commit} {other}\n")
    assert b"99" in repo.bytes("cat-file", "-p", item.citation.blob)
    assert kb.resolve(item).text=="# A\n\nThe limit is 10."
    kb.build(workers=1, rebuild=True)
    assert kb.search("limit")[0].citation==item.citation and not kb.grep("99").items

def loose(repo: Repo, id: str, data: bytes):
    path = repo.folder/f".git/objects/{id[:2]}/{id[2:]}"
    path.parent.mkdir(exist_ok=True)
    if path.exists(): path.chmod(0o644)
    path.write_bytes(zlib.compress(data))

@pytest.mark.parametrize("kind", ["blob", "tree", "commit", "rubbish"])
def test_objects_that_are_not_what_their_ids_say(repo, kind):
    commit = repo.commit({"a.md": "# A\n\nThe limit is 10.\n", "b.md": "# B\n\nUntouched text.\n"})
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("limit")[0]
    ids = {"blob": item.citation.blob, "tree": repo.git("rev-parse", "HEAD^{tree}"), "commit": commit, "rubbish": item.citation.blob}
    if kind=="rubbish": (repo.folder/f".git/objects/{ids[kind][:2]}/{ids[kind][2:]}").chmod(0o644), (repo.folder/f".git/objects/{ids[kind][:2]}/{ids[kind][2:]}").write_bytes(b"rubbish")
    else:
        data = repo.bytes("cat-file", kind, ids[kind])
        data = data.replace(b"limit is 10", b"limit is 99") if kind=="blob" else data.replace(b"a.md", b"c.md") if kind=="tree" else data.replace(b"Work", b"Wark")
        loose(repo, ids[kind], b"%s %d\0" % (kind.encode(), len(data))+data)
    assert kb.resolve(item).integrity in ("source_unavailable", "version_unavailable") and kb.resolve(item).text is None
    report = kb.build(workers=1, rebuild=True)
    assert report.unreadable and not kb.grep("99").items
    if kind in ("blob", "rubbish"): assert kb.resolve(kb.search("untouched")[0]).holds

def test_a_commit_that_would_fill_the_memory(repo):
    repo.commit({"a.md": "# A\n"})
    head = f"tree {repo.git('rev-parse', 'HEAD^{tree}')}\nauthor A <a> 0 +0000\ncommitter A <a> 0 +0000\n\n".encode()
    megabytes,letters = 1_500, b"x"*2**20
    made,packed = hashlib.sha1(start := b"commit %d\0" % (len(head)+megabytes*2**20)+head), zlib.compressobj(1)
    parts = [packed.compress(start)]
    for _ in range(megabytes):
        made.update(letters)
        parts.append(packed.compress(letters))
    path = repo.folder/f".git/objects/{made.hexdigest()[:2]}/{made.hexdigest()[2:]}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(parts)+packed.flush())
    (repo.folder/".git/refs/heads/main").write_text(made.hexdigest()+"\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    report = repo.kb().build(workers=1)
    assert not report.documents and report.unreadable[0].reason
    if sys.platform=="linux": assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < max(before, 2**20) # kilobytes

def test_more_open_files_than_select_can_count(repo):
    repo.commit({"a.md": "# A\n\nThe limit is 10.\n"})
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("limit")[0]
    kb.close()
    soft,hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2_048, hard), hard))
    opened = []
    try:
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
        assert kb.resolve(item).holds
    finally:
        for file in opened: os.close(file)
        kb.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

def test_a_pipe_does_not_stop_anything(repo):
    repo.commit({"a.md": "# A\n\nText.\n"})
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("text")[0]
    tree = repo.git("rev-parse", "HEAD^{tree}")
    path = repo.folder/f".git/objects/{tree[:2]}/{tree[2:]}"
    path.unlink()
    os.mkfifo(path)
    with Objects(open_repository(repo.folder), seconds=1.0) as objects:
        began = time.monotonic()
        with pytest.raises(SourceError): objects.read(tree, "tree")
        assert time.monotonic()-began < 5
        assert objects.read(item.citation.version, "commit")
    assert not git_processes()

# --- What a commit holds

NAMES = ["-dash.md", "a b.md", "café.md", "line\nbreak.md", 'quote"d.md', "tab\there.md", "тест/файл.md", "semi;colon%41.md", "Readme.md", "readme.md", "a\\b.md", "\u202egnp.md", "x"*200+".md", "*.md", "[a].md", ".hidden/deep.md"]

def test_every_name_is_one_file(repo):
    words = {name: f"zebra{number}q" for number,name in enumerate(NAMES)}
    repo.commit({name: f"# T\n\nThe word is {word}.\n" for name,word in words.items()})
    for more in ("", 'include = ["**/*.md", ".hidden/**"]'):
        kb = repo.kb(more)
        report = kb.build(workers=1)
        assert report.documents==len(NAMES) and not report.unreadable
        for name,word in words.items():
            reply = kb.search(word)
            assert [item.path for item in reply]==[name]
            assert kb.resolve(str(reply[0].citation)).holds and word in kb.read(reply[0]).text
            assert kb.read_path("engine", name, "3").text==f"The word is {word}."

def test_what_is_not_a_file_is_said(repo):
    repo.commit({"own.md": "# Own\n\nOwn text.\n", "blob.bin": b"a\0b"*100, "big.txt": "word "*400_000, "lfs.pdf": "version https://git-lfs.github.com/spec/v1\noid sha256:"+"0"*64+"\nsize 9\n", "empty.py": "", "latin.c": "/* größer */\n".encode("latin-1"),
                 "wide.txt": "Größe\n".encode("utf-16"), "min.js": "x"*9_000})
    os.symlink("/etc/passwd", repo.folder/"link.md")
    os.symlink("/etc", repo.folder/"dir")
    repo.git("add", "-A")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1'*40},vendor/lib")
    bad = repo.git("hash-object", "-w", "--stdin", input=b"# Bad\n")
    tree = repo.bytes("write-tree").strip()
    entries = repo.bytes("ls-tree", "-z", tree)+b"100644 blob "+bad.encode()+b"\tb\xe4d.md\0"
    commit = repo.git("commit-tree", repo.git("mktree", "-z", "--missing", input=entries), "-m", "x")
    repo.git("update-ref", "refs/heads/main", commit)
    (repo.home/"limits").mkdir()
    kb = repo.kb("[limits]\nfile_bytes = 1000000")
    report = kb.build(workers=1)
    reasons = {item.path: item.reason for item in report.unreadable}
    for path,says in {"blob.bin": "not text", "big.txt": "more than the limit", "lfs.pdf": "Git LFS", "empty.py": "empty", "link.md": "symbolic link", "dir": "symbolic link", "vendor/lib": "submodule", "b\\xe4d.md": "not UTF-8", "min.js": "data"}.items(): assert says in reasons.pop(path), path
    assert not reasons and report.documents==3
    assert kb.search("größer")[0].text=="/* größer */" and kb.search("Größe", paths="wide.txt")[0].text=="Größe"
    assert not kb.grep("root:").items and not kb.grep("oid sha256").items
    assert all(kb.resolve(item).holds for item in kb.search("own größer größe"))
    git_links = {path for path in ("link.md", "dir")}
    for path in git_links:
        with pytest.raises(UsageError): kb.read_path("engine", path)

def test_trees_that_git_would_not_make(repo):
    "Whatever is found can be cited and resolves"
    repo.commit({"z.md": "# Z\n"})
    one,other = (repo.git("hash-object", "-w", "--stdin", input=text) for text in (b"# One\n\nfirst words\n", b"# Two\n\nsecond words\n"))
    def tree(*entries): return repo.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", input=b"".join(mode+b" "+name+b"\0"+bytes.fromhex(id) for mode,name,id in entries))
    below = tree((b"100644", b"x.md", one))
    names = [(b"100644", b"a.md", one), (b"100644", b"a.md", other), (b"100644", b"d", one), (b"40000", b"d", below), (b"100664", b"old mode.md", one), (b"040000", b"zero", below), (b"100644", b"tree.md", below),
             (b"40000", b"file", one), (b"100644", b"..", one), (b"100644", b"e/../f.md", one), (b"100644", b".git", other), (b"100644", b"n"*20_000, one), (b"100644", " ".encode()*6_000, one)]
    for chosen in ([name for name in names if name[1]!=b"file"], names):
        repo.git("update-ref", "refs/heads/main", repo.git("commit-tree", tree(*chosen), "-m", "odd"))
        kb = repo.kb()
        report = kb.build(workers=1)
        assert report.unreadable
        items = kb.search("words", limit=50)
        assert {item.path for item in items}=={"old mode.md", "zero/x.md", ".git"} # `.git` in a tree is a name as others are, since nothing is checked out
        assert all(kb.resolve(str(item.citation)).integrity=="verified" for item in items)
    assert "not a tree" in report.unreadable[0].reason # what cannot be listed stays as it was

def test_the_blob_and_not_the_working_tree(repo):
    repo.commit({"guide.md": "# G\n\nLimit is 10.\n"})
    repo.git("config", "core.autocrlf", "true")
    (repo.folder/"guide.md").write_bytes(b"# G\r\n\r\nLimit is 99.\r\n")
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("limit")[0]
    assert item.text=="# G\n\nLimit is 10." and item.freshness=="fresh" and item.citation.blob==repo.git("rev-parse", "HEAD:guide.md")
    (repo.folder/"guide.md").unlink()
    assert kb.resolve(item).holds

@pytest.mark.parametrize("form", ["plain", "bare", "worktree", "packed", "submodule"])
def test_forms_of_repositories(repo, form):
    commit = repo.commit({"w.md": "# W\n\nWorktree text.\n"})
    repo.git("tag", "-a", "v1", "-m", "one")
    repo.git("tag", "-a", "v1-copy", "-m", "two", "v1")
    place = repo.folder
    if form=="bare": repo.git("clone", "-q", "--bare", ".", place := repo.home/"bare.git")
    if form=="worktree": repo.git("worktree", "add", "-q", "--detach", place := repo.home/"wt")
    if form=="packed": repo.git("gc", "-q"), repo.git("pack-refs", "--all")
    if form=="submodule":
        outer = Repo(repo.home/"outer")
        outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo.folder), "inner")
        place = outer.folder/"inner"
        subprocess.run(["git", "-C", place, "fetch", "-q", "--tags"], check=True, env=os.environ|FIXED)
    for ref in ["HEAD", "v1", "v1-copy", "refs/tags/v1", commit]:
        kb = repo.kb(repo=place, ref=ref, name=f"{form}.toml")
        kb.build(workers=1)
        item = kb.search("worktree")[0]
        assert item.citation.version==commit and kb.resolve(item).holds and item.freshness=="fresh"

def test_shallow_clones(repo):
    first = repo.commit({"l.md": "# L\n\nThe limit is 10.\n"})
    repo.commit({"l.md": "# L\n\nThe limit is 20.\n"})
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{repo.folder}", repo.home/"shallow"], check=True, env=os.environ|FIXED, capture_output=True)
    kb = repo.kb(repo=repo.home/"shallow", ref=first)
    reason = kb.build(workers=1).unreadable[0].reason
    assert first in reason and "shallow" in reason
    kb = repo.kb(repo=repo.home/"shallow", ref="HEAD", name="head.toml")
    kb.build(workers=1)
    assert kb.search("limit")[0].text.endswith("20.")
    old = Citation(kind="code", version=first, source="engine", path="l.md", blob=repo.git("rev-parse", f"{first}:l.md"), span=Span(3, 3), text=text_hash("The limit is 10."))
    verdict = kb.resolve(old)
    assert (verdict.integrity, verdict.currency, verdict.text)==("version_unavailable", "superseded_changed", None) and "shallow" in verdict.reason

def test_sha256(repo, tmp_path):
    other = Repo(tmp_path/"other", "--object-format=sha256")
    commit = other.commit({"src/valve.py": VALVE})
    kb = other.kb(repo=other.folder)
    kb.build(workers=1)
    item = kb.search("opens_at")[0]
    assert len(commit)==64 and item.citation.version==commit and kb.resolve(item).holds
    with pytest.raises(UsageError, match="SHA-256"): kb.export(item, "swhid")
    kb.close()

def test_the_listing_is_gitpythons(repo):
    "An independent reader of the same repository"
    git = pytest.importorskip("git")
    repo.commit({name: f"{number}\n" for number,name in enumerate(["a.py", "deep/er/b.py", "c.txt", "deep/d"])})
    opened = open_repository(repo.folder)
    with Objects(opened) as objects: listing = list_blobs(objects, Code(id="x", kind="code", repo="x"), commit_of(opened, "main"))
    assert listing.files=={blob.path: blob.hexsha for blob in git.Repo(repo.folder).commit("main").tree.traverse() if blob.type=="blob"}

PIECES = [b"# T\n", b"\r\n", b"\r", b"\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"---\n", b"x: y\n", b"```\n", b"\0", b"\x1b$B", b"# coding: shift_jis\n", b"# coding: iso-2022-jp\n", "größe ".encode(), b"\xe9", b"\x85", b"\x0c", "\u2028".encode(), b"===\n", b".. note::\n", b" \t \n", b"word ", b"a\0b\0"]

@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(["a.md", "a.rst", "a.txt", "a.py"]))
def test_what_is_found_is_what_is_cited(pieces, path):
    "The text that is indexed is the text that the resolver decodes, however often line ends were converted and marks written"
    data = b"".join(pieces)
    try: found = extract_code(path, data)
    except ExtractionError: return
    assert [page.text for page in found.pages]==[decode_source(data).text]

def test_files_made_to_be_slow_or_deep(repo):
    repo.commit({"slow.py": "(\n"+"("*200_000+"\n", "deep.py": "".join(" "*n+f"class A{n}:\n" for n in range(1_200)), "twice.md": "# T\r\r\n\r\r\nwords of a file converted twice\r\r\n", "ok.py": VALVE})
    kb = repo.kb()
    began = time.process_time()+os.times().children_user
    report = kb.build(workers=1)
    assert time.process_time()+os.times().children_user-began < 20 and report.documents==4 and not report.unreadable
    for query in ("converted twice", "A3", "opens_at"): assert (item := kb.search(query)[0]) and kb.resolve(item).holds, query

# --- Citations

def test_swhids_are_gits(repo):
    commit = repo.commit({"src/relief valve;1.py": VALVE})
    kb = repo.kb('origin = "https://example.org/engine.git"\nurl = "https://example.org/blob/{commit}/{path}#L{line}-L{last}"')
    kb.build(workers=1)
    item = kb.search("opens_at")[0]
    said = dict(part.split("=", 1) for part in kb.export(item, "swhid").split(";")[1:])
    assert kb.export(item, "swhid").startswith(f"swh:1:cnt:{repo.git('hash-object', 'src/relief valve;1.py')};")
    assert said==dict(origin="https://example.org/engine.git", anchor=f"swh:1:rev:{repo.git('rev-parse', 'HEAD')}", path="/src/relief%20valve%3B1.py", lines=f"{item.lines[0]}-{item.lines[1]}")
    assert item.url==f"https://example.org/blob/{commit}/src/relief%20valve%3B1.py#L{item.lines[0]}-L{item.lines[1]}"==kb.export(item, "url")
    assert object_id("blob", VALVE.encode())==item.citation.blob and "origin" not in swhid(item.citation)

def content(path: Path) -> list:
    "What an index says, whatever the numbers in it are"
    index = Index(path)
    documents = [[(document.source, document.path, document.pin, document.state, str(passage.span), passage.heading, index.texts([passage])[passage.id]) for passage in index.passages_of(document.id)] for document in index.stored()]
    keys = sorted(index.rows("SELECT key FROM chunk"))
    tokens = [(token, len(data)) for token,data in index.postings()]
    index.close()
    return [documents, keys, tokens]

def test_a_moved_branch_costs_what_changed(repo):
    repo.commit({f"m{number}.py": VALVE.replace("350", str(number)) for number in range(20)})
    kb = repo.kb()
    assert kb.build(workers=1).added==20
    assert (again := kb.build(workers=1)).changed is False and again.kept==20
    before = kb.search("return 7")[0]
    head = repo.commit({"m3.py": None, "m4.py": VALVE.replace("350", "four"), "new.py": "NEW = 1\n"})
    assert kb.search("return 7")[0].freshness=="stale"
    status = kb.status().sources[0]
    assert status.state=="stale" and head[:12] in status.reason and (status.changed, status.new, status.gone)==(1, 1, 1)
    report = kb.build(workers=1)
    assert (report.added, report.removed, report.documents)==(2, 1, 20) and kb.status().fresh
    moved = content(kb.profile.index)
    fresh = repo.kb(name="fresh.toml")
    made = fresh.build(workers=1)
    assert content(fresh.profile.index)==moved and made.generation==report.generation
    after = kb.search("return 7")[0]
    assert after.citation.version==head and after.citation.blob==before.citation.blob and after.id!=before.id
    for id in (before.id, after.id): assert kb.resolve(id).integrity=="verified" # identifiers of earlier commits are known still
    repo.commit({"m7.py": None})
    kb.build(workers=1)
    for id in (before.id, after.id): assert (verdict := kb.resolve(id)).integrity=="verified" and verdict.currency=="source_gone"
    kb.build(workers=1, rebuild=True)
    for id in (before.id, after.id): assert kb.resolve(id).integrity=="verified"

def test_versions_side_by_side(repo):
    old = repo.commit({"same.py": VALVE, "limit.py": "LIMIT = 10\n"}); repo.git("tag", "v1")
    new = repo.commit({"limit.py": "LIMIT = 20\n"}); repo.git("tag", "v2")
    (repo.home/"two.toml").write_text("".join(f'[[source]]\nid = "{tag}"\nkind = "code"\nrepo = "engine"\nref = "{tag}"\n' for tag in ("v1", "v2")))
    kb = KnowledgeBase(repo.home/"two.toml")
    repo.opened.append(kb)
    kb.build(workers=1)
    index = Index(kb.profile.index)
    assert len(index.rows("SELECT * FROM extraction"))==3 and len(index.documents())==4
    index.close()
    items = {item.source: item for item in kb.search("opens_at")}
    assert {id: item.citation.version for id,item in items.items()}==dict(v1=old, v2=new)
    assert all(kb.resolve(item).holds and kb.resolve(item.id).holds for item in items.values())
    assert kb.search("LIMIT", sources="v2", limit=1)[0].text=="LIMIT = 20"

def test_the_other_sources_are_left_alone(repo):
    repo.commit({"a.py": VALVE})
    (repo.home/"docs").mkdir()
    (repo.home/"docs/d.md").write_text("# D\n\nThe relief valve.\n")
    more = '[[source]]\nid = "docs"\nkind = "documents"\nroot = "docs"\n'
    kb = repo.kb(more)
    kb.build(workers=1)
    both = [str(item.citation) for item in kb.search("relief valve")]
    repo.commit({"b.py": "x = 1\n"})
    kb.build(workers=1)
    assert [one for one in (str(item.citation) for item in kb.search("relief valve")) if ":doc:" in one]==[one for one in both if ":doc:" in one]
    assert {item.source for item in kb.search("relief valve", kinds="code")}=={"engine"} and {item.source for item in kb.search("relief valve", kinds="documents")}=={"docs"}
    shutil.rmtree(repo.folder)
    reply = kb.search("relief valve")
    assert reply.outcome=="degraded" and {item.source: item.freshness for item in reply}==dict(docs="fresh", engine="unknown")
    assert kb.build(workers=1).documents==3

@pytest.mark.parametrize("ref,head", [("HEAD", None), ("HEAD", "ref:refs/heads/main\n"), ("main-worktree/HEAD", None), ("heads/main", None), ("alias", None)])
def test_whatever_a_name_is_called_its_move_is_noticed(repo, ref, head):
    repo.commit({"a.md": "# A\n\nThe limit is 10.\n"})
    if head: (repo.folder/".git/HEAD").write_text(head)
    if ref=="alias": repo.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    kb = repo.kb(ref=ref)
    kb.build(workers=1)
    item = kb.search("limit")[0]
    assert kb.resolve(item).holds
    repo.commit({"a.md": "# A\n\nThe limit is 20.\n"})
    assert kb.resolve(item).currency=="superseded_changed" and kb.search("limit")[0].freshness=="stale"

def test_one_name_for_a_branch_and_a_tag(repo):
    tagged = repo.commit({"a.md": "# A\n\nThe limit is 10.\n"})
    repo.git("tag", "both")
    repo.commit({"a.md": "# A\n\nThe limit is 20.\n"})
    repo.git("branch", "both")
    repo.git("update-ref", "refs/heads/HEAD", tagged)
    kb = repo.kb(ref="both")
    kb.build(workers=1)
    item = kb.search("limit")[0]
    assert item.citation.version==tagged and kb.resolve(item).holds
    assert any("refs/tags/both or refs/heads/both" in finding.says for finding in examine(kb.profile.file))
    repo.git("tag", "-d", "both")
    assert kb.resolve(item).currency=="superseded_changed" and not any("could mean" in finding.says for finding in examine(kb.profile.file))
    kb = repo.kb(ref="HEAD", name="head.toml")
    kb.build(workers=1)
    assert kb.search("limit")[0].citation.version!=tagged # HEAD is HEAD, also where a branch is called so

def test_what_was_collected_is_gone_at_once(repo):
    "Also for a process that had its pack open"
    repo.commit({"a.md": "# A\n\nThe limit is 10.\n"})
    repo.git("gc", "-q")
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("limit")[0]
    assert kb.resolve(item).holds
    repo.commit({"a.md": "# A\n\nThe limit is 20.\n"})
    repo.git("reset", "-q", "--hard", repo.git("commit-tree", "HEAD^{tree}", "-m", "Forced"))
    assert kb.resolve(item).integrity=="verified"
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert kb.resolve(item).integrity=="version_unavailable" and kb.read(item).origin=="stored copy"

def test_withdrawn_code(repo):
    repo.commit({"a.py": VALVE})
    kb = repo.kb()
    kb.build(workers=1)
    item = kb.search("opens_at")[0]
    for more,kind in [('exclude = ["a.py"]', "code"), ('include = ["b/**"]', "code")]:
        today = repo.kb(more)
        assert today.resolve(item).integrity=="withdrawn" and not today.search("opens_at").items and not today.grep("opens_at").items
        with pytest.raises(UsageError): today.read_path("engine", "a.py")

CITED = Citation(kind="code", version="ab"*20, source="engine", path="a.py", blob="cd"*20, span=Span(5, 6), text=text_hash("x"))

def test_whatever_is_asked_is_answered(tmp_path):
    made = Repo(tmp_path/"engine")
    commit = made.commit({"a.py": VALVE, "deep/b.py": VALVE})
    kb = made.kb()
    true = Citation(kind="code", version=commit, source="engine", path="a.py", blob=made.git("rev-parse", "HEAD:a.py"), span=Span(5, 6), text=text_hash("    def opens_at(self):\n        return 350"))
    assert kb.resolve(true).holds
    ids = [commit, true.blob, made.git("rev-parse", "HEAD^{tree}"), "0"*40, "f"*64]
    @given(st.sampled_from(ids), st.sampled_from(ids), st.sampled_from(["a.py", "deep", "deep/b.py", "a.py/b", "é", "-x", "line\n"]), st.integers(1, 9), st.integers(0, 3), st.sampled_from([None, (1, 3), (7, 9_999)]), st.booleans())
    def check(version, blob, path, first, more, chars, own):
        cited = Citation(kind="code", version=version, source="engine", path=path, blob=blob, span=Span(first, first if chars else first+more, chars=chars), text=true.text if own else text_hash("x"))
        verdict = kb.resolve(str(cited))
        assert (verdict.integrity=="verified")==(cited==true or verdict.text is not None) and "please report" not in verdict.reason
        if verdict.integrity=="verified": assert text_hash(verdict.text)==cited.text and (version, blob)==(commit, true.blob)
    check()
    kb.close()
    assert not git_processes()

# --- Lines

def test_grep_is_git_grep(repo):
    choose = random.Random(4)
    words = ["alpha", "beta()", "x = 1", "größe", "self.assertEqual(", "é", "\t", "  ", "[a-z]", "\\d", '"', "%s"]
    files = {f"d{number%3}/f{number}.py": "\n".join(" ".join(choose.choices(words, k=5)) for _ in range(30))+choose.choice(["", "\n"]) for number in range(30)}
    repo.commit(files)
    kb = repo.kb()
    kb.build(workers=1)
    lines = [line for text in files.values() for line in text.split("\n")]
    for _ in range(60):
        line = choose.choice(lines)
        start = choose.randrange(len(line)-1)
        pattern = line[start:start+choose.randint(1, 9)]
        fold = choose.random() < 0.3
        said = subprocess.run(["git", "-C", repo.folder, "grep", "-nzIF", *(["-i"] if fold else []), "-e", pattern, "main"], capture_output=True, env=os.environ|FIXED|dict(LC_ALL="C.UTF-8")).stdout.decode()
        wanted = sorted((parts[0].removeprefix("main:"), int(parts[1]), parts[2]) for row in said.split("\n") if len(parts := row.split("\0"))==3)
        found = kb.grep(pattern, ignore_case=fold, limit=1000)
        assert found.complete and sorted((match.citation.path, match.citation.lines[0], match.text) for match in found)==wanted, pattern
    assert all(kb.resolve(match.citation).holds for match in list(kb.grep("alpha"))[:20])

def test_commands(repo):
    repo.commit({"src/valve.py": VALVE})
    repo.kb()
    def run(*arguments): return subprocess.run([sys.executable, "-m", "mimirag", *arguments], cwd=repo.home, capture_output=True, text=True)
    assert run("index").returncode==0
    found = json.loads(run("grep", "opens_at", "--json").stdout)
    assert found["complete"] and found["items"][0]["text"].strip()=="def opens_at(self):"
    assert run("resolve", found["items"][0]["citation"]).returncode==0
    assert run("grep", "no such thing").returncode==1 and run("grep", "(", "--regex").returncode==2 and run("grep", "OPENS_AT", "-i").returncode==0
    said = run("read", "engine", "src/valve.py", "--lines", "5-6")
    assert "return 350" in said.stdout and "mimir:1:code:" in said.stdout
    assert json.loads(run("read", "engine", "src/valve.py", "--json").stdout)["verdict"]["integrity"]=="verified"
    assert run("read", "engine", "none.py").returncode==2 and run("read", "none", "x").returncode==2
    assert run("cite", found["items"][0]["citation"], "--format", "swhid").stdout.startswith("swh:1:cnt:")
    assert run("status").returncode==0 and run("doctor").returncode==0
    assert "engine" in run("search", "opens_at", "--kind", "code").stdout

def test_arguments_that_are_no_text(repo):
    "Bytes that are not UTF-8, on the command line and on standard input; and expressions that make Python warn or give up"
    repo.commit({"a.py": VALVE})
    repo.kb().build(workers=1)
    def run(*arguments, **more): return subprocess.run([sys.executable, "-m", "mimirag", *arguments], cwd=repo.home, capture_output=True, **more)
    for arguments,code in {(b"read", b"engine", b"\xff"): 2, (b"read", b"engine", b"a.py", b"--page", b"1"): 2, (b"read", b"\xff", b"a.py"): 2, (b"grep", b"\xff"): 2, (b"grep", b"-E", b"[[:alpha:]]"): 1, (b"grep", b"-E", b"[[a"): 2, (b"grep", b"-E", b"("*499+b")"*499): 2,
                           (b"search", b"\xff"): 1, (b"search", b"valve", b"--path", b"\xff"): 1, (b"resolve", b"\xff"): 1, (b"show", b"\xff"): 2, (b"verify", b"\xff"): 2, (b"status", b"-p", b"\xff"): 3}.items():
        for more in ([], [b"--json"]):
            done = run(*arguments, *more)
            assert done.returncode==code or b"("*499 in arguments, (arguments, done)
            assert b"Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 1, (arguments, done)
    for encoding in ("utf-8:strict", "ascii:strict", ""):
        done = run("resolve", "-", "--json", input=b"\xff\n\xc3\xa9\n", env=os.environ|dict(PYTHONIOENCODING=encoding))
        assert done.returncode==1 and [verdict["integrity"] for verdict in json.loads(done.stdout)]==["malformed"]*2 and not done.stderr

def test_an_expression_without_end_is_not_answered_with_no(repo):
    repo.commit({"a.txt": "a"*40+"!\n"})
    repo.kb().build(workers=1)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "mimirag", "grep", "-E", "(a+)+$"], cwd=repo.home, capture_output=True, text=True)
    assert done.returncode==3 and not done.stdout and "ended after" in done.stderr and time.monotonic()-began < 30

def test_no_process_is_left(repo):
    repo.commit({"a.py": VALVE})
    kb = repo.kb()
    kb.build(workers=2)
    kb.resolve(kb.search("opens_at")[0])
    kb.close()
    assert not git_processes()

def test_without_grammars(repo):
    "Code is found by its lines where tree-sitter is not installed; with the same citations for the same lines"
    repo.commit({"a.py": VALVE})
    repo.kb()
    code = "import sys\nsys.modules['tree_sitter'] = None\nimport importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda name, package=None: None if name=='tree_sitter' else find(name, package)\n"
    done = subprocess.run([sys.executable, "-c", code+f"from mimirag.extract.code import extract_code\nmade = extract_code('a.py', open({str(repo.folder/'a.py')!r}, 'rb').read())\nprint(made.extractor, [block.kind for block in made.pages[0].blocks])"], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0]=="code/1 ['code', 'code']"

def test_what_was_missing_for_a_while_is_tried_again(repo):
    repo.commit({"a.md": "# A\n\nThere.\n", "b.md": "# B\n\nLost and found.\n"})
    os.symlink("a.md", repo.folder/"link.md")
    repo.commit({})
    kb = repo.kb()
    lost = repo.git("rev-parse", "HEAD:b.md")
    path = repo.folder/f".git/objects/{lost[:2]}/{lost[2:]}"
    path.rename(repo.home/"kept")
    assert {item.path for item in kb.build(workers=1).unreadable}=={"b.md", "link.md"} and kb.search("lost").outcome=="degraded"
    (repo.home/"kept").rename(path)
    report = kb.build(workers=1)
    assert report.added==1 and [item.path for item in report.unreadable]==["link.md"] and kb.resolve(kb.search("lost and found")[0]).holds
    assert kb.build(workers=1).changed is False and kb.search("nothing of it").outcome=="none" # a link hides nothing
