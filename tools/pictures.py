"""Draw the pictures of the README: a reply, a verdict and a marked page, as a notebook shows them.

Needs Chromium (`apt-get install chromium`); run by hand when the cards change, the result is committed.
"""
import base64, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUESTION = "At how many bar does the relief valve open?"

def page(dark: bool) -> str:
    "The cards of one question on the example documents"
    import mimirag
    from mimirag.show import page_picture
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(ROOT/"fixtures/docs", Path(home)/"docs")
        (Path(home)/"mimirag.toml").write_text('[[source]]\nid = "marram"\nkind = "documents"\nroot = "docs"\n')
        with mimirag.open(home) as kb:
            kb.build()
            reply = kb.search(QUESTION, limit=1)
            sheet = next(item for item in kb.search("Technical data set pressure", paths="**/*.pdf") if "Technical data" in item.text)
            png = base64.b64encode(page_picture(kb, sheet, dots=64).png).decode()
            valve = kb.profile.root("marram")/reply[0].path
            cards = [reply._repr_html_(), kb.resolve(reply[0])._repr_html_()]
            valve.write_text(valve.read_text().replace("6.2 bar", "6.3 bar", 1))
            cards.append(kb.resolve(reply[0])._repr_html_())
    colours = "background:#111318;color:#e6e6e6" if dark else "background:#fff;color:#1b1b1b"
    return (f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:24px;font-family:system-ui,sans-serif;{colours}"><div style="display:flex;gap:24px;align-items:flex-start"><div style="flex:1">{"".join(cards)}</div>'
            f'<img style="border:1px solid #8885;margin-top:8px" width="430" src="data:image/png;base64,{png}"></div></body>')

def main():
    folder = ROOT/"nbs/pictures"
    folder.mkdir(exist_ok=True)
    for name,dark in [("result.png", False), *([("dark.png", True)] if "--dark" in sys.argv else [])]:
        with tempfile.TemporaryDirectory() as work:
            (Path(work)/"page.html").write_text(page(dark), "utf-8")
            subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--user-data-dir={work}/profile",
                            "--hide-scrollbars", "--window-size=1320,700", f"--screenshot={folder/name}", f"file://{work}/page.html"], check=True, capture_output=True)
        print(folder/name)

if __name__=="__main__": main()
