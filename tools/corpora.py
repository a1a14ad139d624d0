#!/usr/bin/env python
"""Real documentation to measure with, from Debian's packages: python tools/corpora.py FOLDER [NAME ...]

Makes FOLDER/docs-s (git's manual, HTML), docs-m (Python's reStructuredText, SQLite's and PostgreSQL's HTML), docs-l (Linux, SciPy, Django, CMake) and pdf (manuals
and papers of one and two columns, Chinese and Japanese among them), all of them or those that are named. Downloads up to 700 MB from the package sources of this
machine (Debian 12; run apt-get update first); files are copied byte for byte, and what is packed by gzip is unpacked.
"""
import gzip, shutil, subprocess, sys, tempfile
from pathlib import Path

DOCUMENTS = { # corpus → package, folder in it, endings
    "docs-s": [("git-doc", "usr/share/doc", (".html",))],
    "docs-m": [("python3.11-doc", "usr/share/doc/python3.11/html/_sources", (".rst.txt",)), ("sqlite3-doc", "usr/share/doc", (".html",)), ("postgresql-doc-15", "usr/share/doc", (".html",))],
    "docs-l": [("linux-doc-6.1", "usr/share/doc/linux-doc-6.1/Documentation", (".rst", ".txt")), ("python-scipy-doc", "usr/share/doc", (".html",)), ("cmake-doc", "usr/share/doc", (".rst.txt",)),
               ("python-django-doc", "usr/share/doc", (".html",))]}
PDFS = { # package → folder of its PDFs
    "r-doc-pdf": "usr/share/R/doc/manual", "maxima-doc": "usr/share/doc/maxima-doc", "gnuplot-doc": "usr/share/doc/gnuplot", "debian-policy": "usr/share/doc/debian-policy",
    "developers-reference": "usr/share/developers-reference", "debian-reference-en": "usr/share/debian-reference", "debian-reference-ja": "usr/share/debian-reference",
    "debian-reference-zh-cn": "usr/share/debian-reference", "texlive-lang-chinese": "usr/share/doc/texlive-doc/latex/lshort-chinese", "texlive-lang-japanese": "usr/share/doc/texlive-doc/latex/lshort-japanese",
    "texlive-science-doc": "usr/share/doc/texlive-doc/latex/siunitx", "texlive-latex-recommended-doc": "usr/share/doc/texlive-doc/latex/memoir", "texlive-pictures-doc": "usr/share/doc/texlive-doc/generic/pgf",
    "texlive-publishers-doc": "usr/share/doc/texlive-doc/latex/acmart"}

def unpacked(package: str, work: Path) -> Path:
    "Files of a package"
    into = work/package
    if into.exists(): return into
    print(f"getting {package}", file=sys.stderr)
    subprocess.run(["apt-get", "-qq", "download", package], cwd=work, check=True)
    subprocess.run(["dpkg-deb", "-x", next(work.glob(f"{package}_*.deb")), into], check=True)
    return into

def put(file: Path, place: Path):
    place.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix==".gz": place.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
    else: shutil.copyfile(file, place)

def files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink() and file.name.removesuffix(".gz").endswith(endings)]

def make(name: str, root: Path, work: Path):
    for package,folder,endings in DOCUMENTS.get(name, []):
        base = unpacked(package, work)/folder
        for file in files(base, endings):
            place = file.relative_to(base).as_posix()
            put(file, root/name/package/(place.removesuffix(".txt") if place.endswith(".rst.txt") else place))
    if name=="pdf":
        for package,folder in PDFS.items():
            for file in files(unpacked(package, work)/folder, (".pdf",)): put(file, root/name/package/file.name)
    print(f"{name}: {len(files(root/name, ('',))):,} files")

def main():
    if len(sys.argv) < 2: sys.exit(__doc__)
    root,names = Path(sys.argv[1]).resolve(), sys.argv[2:] or [*DOCUMENTS, "pdf"]
    if unknown := [name for name in names if name not in {*DOCUMENTS, "pdf"}]: sys.exit(f"there is no corpus {unknown[0]!r}; there are {', '.join([*DOCUMENTS, 'pdf'])}")
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None: sys.exit("the packages are Debian's: apt-get and dpkg-deb are needed")
    with tempfile.TemporaryDirectory(prefix="corpora-") as work:
        for name in names:
            try: make(name, root, Path(work))
            except subprocess.CalledProcessError as error: sys.exit(f"{name}: {' '.join(map(str, error.cmd))} failed; run apt-get update, or name fewer corpora")

if __name__=="__main__": main()
