"""Compare our reStructuredText sections with docutils': tools/compare_rst.py FOLDER

Prints how many titles docutils finds in the .rst files below FOLDER, how many of them we place on another line or miss, and how
many we find that it does not; and the CPU seconds of both.
"""
import sys, time
from pathlib import Path
from docutils import nodes
from docutils.core import publish_doctree
from mimirag.extract.rst import extract_rst

SETTINGS = dict(report_level=5, halt_level=6, file_insertion_enabled=False, raw_enabled=False, _disable_config=True, doctitle_xform=False)

def timed(function, argument):
    began = time.process_time()
    return function(argument), time.process_time()-began

def theirs(text: str) -> list[int]:
    "Lines of titles by docutils, which gives the line of the underline"
    return [node.line-1 for node in publish_doctree(text, settings_overrides=SETTINGS).findall(nodes.title) if isinstance(node.parent, nodes.section)]

def main(folder: str):
    files,titles,missed,extra,ours_seconds,their_seconds = 0,0,0,0,0.0,0.0
    for path in sorted(Path(folder).rglob("*.rst")):
        found,seconds = timed(extract_rst, path.read_bytes())
        ours = {block.line for block in found.pages[0].blocks if block.kind=="heading" and block.level < 20} # beyond are signatures
        lines,more = timed(theirs, found.pages[0].text)
        files,titles,missed,extra = files+1, titles+len(lines), missed+len(set(lines)-ours), extra+len(ours-set(lines))
        ours_seconds,their_seconds = ours_seconds+seconds, their_seconds+more
        if ours!=set(lines): print(f"{path}: {sorted(ours ^ set(lines))}")
    print(f"{files} files, {titles} titles by docutils: {missed} missed, {extra} extra; CPU {ours_seconds:.2f} s against {their_seconds:.2f} s")

if __name__=="__main__": main(sys.argv[1])
