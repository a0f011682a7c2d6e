#!/usr/bin/env python3
"""Gathers system prompts and tool schemas of published agents into two files that agent_data.py reads.

    agent_sources.py --agents DIR --out DATA_DIR      # writes agent_prompts.json and agent_schemas.json

DIR holds, as their repositories publish them: system-prompts/gemini-cli.json and gemini-cli-tools.json,
system-prompts/roo-code/*.txt, mcp-tools-google-workspace.json, bfcl/multi_turn_func_doc/*.json (Apache-2.0) and
tau2-tools-data.json (MIT). Questions and answers of any benchmark are not among them.
"""
import argparse, json, re
from pathlib import Path


def prompts(agents):
    p = agents / "system-prompts"
    found = list(json.loads((p / "gemini-cli.json").read_text()).values()) + [f.read_text() for f in sorted(p.glob("roo-code/*.txt"))]
    return sorted(set(found))


def schemas(agents):
    """Functions {"name", "description", "parameters"}, one of each name."""
    out = {}
    def add(name, description, parameters):
        parameters = {k: v for k, v in parameters.items() if k != "$schema"}
        if "properties" in parameters: out.setdefault(name, {"name": name, "description": description, "parameters": parameters})
    for t in json.loads((agents / "mcp-tools-google-workspace.json").read_text())["tools"]: add(t["name"], t["description"], t["inputSchema"])
    for area in json.loads((agents / "tau2-tools-data.json").read_text()).values():
        for t in area["tools"]:
            simple = all(re.fullmatch("string|integer|number|boolean", p["type"]) for p in t["parameters"])
            if simple: add(t["name"], t["description"], {"type": "object", "properties": {p["name"]: {"type": p["type"], "description": p["description"]} for p in t["parameters"]}, "required": [p["name"] for p in t["parameters"] if p["required"]]})
    for f in sorted((agents / "bfcl/multi_turn_func_doc").glob("*.json")):
        for line in f.read_text().splitlines():
            t = json.loads(line.replace('"type": "dict"', '"type": "object"').replace('"type": "float"', '"type": "number"'))
            add(t["name"], t["description"].split("Tool description: ")[-1], t["parameters"])
    for text in json.loads((agents / "system-prompts/gemini-cli-tools.json").read_text()).values():
        try: t = json.loads(re.sub(r",(\s*[}\]])", r"\1", text), strict=False)
        except ValueError: continue                     # a snapshot with unescaped quotes
        add(t["name"], t["description"], t.get("parametersJsonSchema", {}))
    return list(out.values())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--agents", required=True, type=Path); a.add_argument("--out", required=True, type=Path)
    a = a.parse_args()
    p, s = prompts(a.agents), schemas(a.agents)
    (a.out / "agent_prompts.json").write_text(json.dumps(p)); (a.out / "agent_schemas.json").write_text(json.dumps(s))
    print(len(p), "prompts,", len(s), "schemas")


if __name__ == "__main__":
    main()
