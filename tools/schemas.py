"Write the JSON Schema of every public model to mimirag/schemas; --check only compares"
import json, sys
from pathlib import Path

def schemas() -> dict[str, str]:
    "File name → JSON Schema (2020-12), as the values are written"
    from mimirag.doctor import Finding
    from mimirag.evidence.citation import Citation
    from mimirag.evidence.packet import BuildReport, Evidence, Matches, Reading, Reply, Status
    from mimirag.evidence.verdict import Verdict
    from mimirag.sources.profile import _File
    made = {}
    for model in (Citation, Evidence, Reply, Verdict, Reading, Matches, BuildReport, Status, Finding):
        made[model.__name__.lower()] = model.model_json_schema(mode="serialization")
    made["profile"] = dict(_File.model_json_schema(), title="mimirag.toml")
    return {f"{name}.json": json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1, ensure_ascii=False)+"\n" for name,schema in made.items()}

def main():
    folder = Path(__file__).resolve().parents[1]/"mimirag/schemas"
    made = schemas()
    there = {path.name: path.read_text("utf-8") for path in folder.glob("*.json")}
    if "--check" in sys.argv: sys.exit(0 if there==made else "mimirag/schemas is not what the models say: run tools/schemas.py")
    folder.mkdir(exist_ok=True)
    for name in there.keys()-made.keys(): (folder/name).unlink()
    for name,text in made.items(): (folder/name).write_text(text, "utf-8")

if __name__=="__main__": main()
