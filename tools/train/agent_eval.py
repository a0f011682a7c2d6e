#!/usr/bin/env python3
"""Measures the default model through the program: hearth, greedy, on tools, names and values that training never used.

    agent_eval.py --hearth build/release/hearth --data DIR [--model M.gguf] [--n 60] [--seed 5] [--needles 10]
                  [--bfcl BFCL_v4_simple_python.json --answers POSSIBLE_ANSWER.json] [--kv int8]

DIR as for agent_train.py. Prints one line a figure; --json FILE keeps the misses as well.
"""
import argparse, json, os, re, subprocess, sys, tempfile
from collections import defaultdict

from agent_data import *


class Program:
    def __init__(self, a): self.a, self.dir = a, tempfile.mkdtemp()

    def run(self, *words):
        return subprocess.run([self.a.hearth, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True).stdout.decode("utf-8", "replace")

    def answer(self, messages, tools=None, n=200):
        """What the program says next. The prompt is the one that the program's own template gives."""
        m, t, p = (os.path.join(self.dir, x) for x in ("m.json", "t.json", "p.txt"))
        json.dump(messages, open(m, "w")); json.dump(tools or [], open(t, "w"))
        if self.a.model: text = self.run("template", self.a.model, "--messages", m, *(["--tools", t] if tools else []))
        else: text = render(messages, tools, True)
        if self.a.model and not self.checked: assert text == render(messages, tools, True), "the program renders something else than was trained on"; self.checked = True
        open(p, "w").write(text)
        out = self.run("sample", *([self.a.model] if self.a.model else []), "--prompt-file", p, "--tokens", str(n), "--temperature", "0", "--quiet", "--no-prompt-cache", *(["--kv-quantize", self.a.kv] if self.a.kv else []))
        return out.replace("<|im_end|>", "").strip()

    checked = False


CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.S)


def calls_of(text):
    """-> the calls, or None when one is not a JSON object with a name and arguments."""
    out = []
    if text.count("<tool_call>") != text.count("</tool_call>"): return None
    for body in CALL.findall(text):
        try: c = json.loads(body)
        except ValueError: return None
        if not isinstance(c, dict) or not isinstance(c.get("name"), str) or not isinstance(c.get("arguments"), dict): return None
        out.append((c["name"], c["arguments"]))
    return out


class Score:
    def __init__(self): self.n, self.ok, self.misses = defaultdict(int), defaultdict(int), []

    def add(self, what, good, *why):
        self.n[what] += 1; self.ok[what] += bool(good)
        if not good: self.misses.append([what, *why])
        if sum(self.n.values()) % 50 == 0: print(f"# {sum(self.n.values())} checks", file=sys.stderr, flush=True)


def values_in(answer, expected, result):
    """Every number, name, code and word of five letters that the expected answer took from the result is in the answer."""
    took = [w.strip(".,:") for w in re.findall(r"[\w@./:#+-]*\d[\w@./:#+-]*|\w{5,}", expected)]
    return all(w in answer for w in took if w in result)


def measure_calls(p, d, n, s):
    for _ in range(n):
        tools = [any_tool(d.g) for _ in range(d.g.int(1, 4))]
        every, schemas = d.toolset(tools, d.g.int(0, 3))
        tool = d.g.pick(every); c = tool.make(d.g)
        messages = d.system(0) + [U(c.request)]
        out = p.answer(messages, schemas)
        got = calls_of(out)
        s.add("call: one is made", "<tool_call>" in out, c.request, out)
        if "<tool_call>" in out: s.add("call: its format is valid", got, c.request, out)
        s.add("call: right tool", got and len(got) == 1 and got[0][0] == tool.name, c.request, out)
        s.add("call: right arguments too", got and got == [(tool.name, c.args)], c.request, json.dumps(c.args), out)
        out = p.answer(messages + [C((tool.name, c.args)), R(c.result)], schemas)
        s.add("call: the answer has the result's values", "<tool_call>" not in out and values_in(out, c.answer, c.result), c.result, c.answer, out)
    for _ in range(n // 2):
        tools = [any_tool(d.g) for _ in range(2)]
        every, schemas = d.toolset(tools, 1)
        cs = [(t, t.make(d.g)) for t in (every + every)[:2]]
        out = p.answer(d.system(0) + [U(" Also: ".join(c.request for _, c in cs))], schemas)
        s.add("two calls in one turn: both right", calls_of(out) == [(t.name, c.args) for t, c in cs], cs[0][1].request, cs[1][1].request, out)
    for _ in range(n // 2):
        every, schemas = d.toolset([any_tool(d.g)], 1)
        m = d.talk()
        out = p.answer(d.system(0) + m[:1], schemas)
        s.add("small talk with tools at hand: no call", "<tool_call>" not in out, m[0]["content"], out)
        other = any_tool(d.g)
        if all(other.family != t.family for t in every):
            c = other.make(d.g)
            out = p.answer(d.system(0) + [U(c.request)], schemas)
            s.add("no tool fits: no call", "<tool_call>" not in out, c.request, said([t.name for t in every]), out)
        t = every[0]; c = t.make(d.g)
        out = p.answer(d.system(0) + [U(c.request), C((t.name, c.args)), R(json.dumps({"error": "temporarily unavailable, try again"}))], schemas)
        s.add("after a passing error: the same call again", calls_of(out) == [(t.name, c.args)], c.request, out)


def measure_files(p, d, n, s):
    done = 0
    while done < n:
        x = d.one("files"); ms = x["messages"]
        for i, m in enumerate(ms):
            if m["role"] != "assistant": continue
            out = p.answer(ms[:i], x["tools"], 300)
            if "tool_calls" in m: s.add("files: right call", calls_of(out) == [(c["function"]["name"], c["function"]["arguments"]) for c in m["tool_calls"]], ms[i - 1]["content"], json.dumps(m["tool_calls"]), out)
            else: s.add("files: the answer has the values", "<tool_call>" not in out and values_in(out, m["content"], ms[i - 1]["content"]), ms[i - 1]["content"], m["content"], out)
        done += 1


def measure_text(p, d, n, s):
    for kind, what in (("json_answer", "JSON by schema: exact"), ("edit_text", "edit of a short text: exact")):
        for _ in range(n):
            x = d.one(kind); out = p.answer(x["messages"][:-1], None, 400)
            s.add(what, out == x["messages"][-1]["content"], x["messages"][-2]["content"], x["messages"][-1]["content"], out)


def measure_recall(p, d, needles, s):
    for chars, tokens in ((2000, 500), (8000, 2000), (16000, 4000), (24000, 6000)):
        for i in range(needles):
            for part in ("first", "second", "last"):
                g, parts, size = d.g, [], 0
                while size < chars: parts.append(g.paragraph()); size += len(parts[-1])
                who, v = g.name(), g.code()
                third = len(parts) // 3
                parts.insert({"first": 0, "second": third, "last": 2 * third}[part] + g.int(0, third), f"The code of {who} is {v}.")
                out = p.answer([U("\n\n".join(parts) + f"\n\nWhat is the code of {who}?")], None, 40)
                s.add(f"needle in {tokens} tokens, {part} third", v in out, f"{who} {v}", out)
    for size in (300, 1200, 6000, 18000):
        for _ in range(needles):
            g, ps, n_ = d.g, [], 0
            while n_ < size: ps.append(g.paragraph(80, 500)); n_ += len(ps[-1])
            para = g.pick(ps); start = " ".join(para.split()[:5])
            out = p.answer([U("\n\n".join(ps) + f"\n\nCopy the paragraph that begins with \"{start}\".")], None, 250)
            s.add(f"paragraph copied out of {size // 4} tokens: exact", out == para, para, out)


def measure_bfcl(p, questions, answers, n, s):
    """Real functions and requests that nobody here wrote: one call each; of the arguments, those that have a known answer."""
    truth = {x["id"]: x["ground_truth"] for x in map(json.loads, open(answers))}
    for q in list(map(json.loads, open(questions)))[:n]:
        tools = json.loads(json.dumps([{"type": "function", "function": f} for f in q["function"]]).replace('"type": "dict"', '"type": "object"').replace('"type": "float"', '"type": "number"'))
        out = p.answer(q["question"][0], tools)
        got, (name, want) = calls_of(out), next(iter(truth[q["id"]][0].items()))
        s.add("BFCL simple: a call is made", "<tool_call>" in out, q["question"][0][0]["content"], out)
        if "<tool_call>" in out: s.add("BFCL simple: its format is valid", got, out)
        s.add("BFCL simple: right function", got and got[0][0] == name, q["question"][0][0]["content"], out)
        good = got and len(got) == 1 and got[0][0] == name and all(got[0][1].get(k, "") in v or str(got[0][1].get(k, "")) in map(str, v) for k, v in want.items())
        s.add("BFCL simple: right arguments too", good, q["question"][0][0]["content"], json.dumps(want), out)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for x in ("hearth", "data"): a.add_argument("--" + x, required=True)
    for x in ("model", "bfcl", "answers", "json", "kv"): a.add_argument("--" + x)
    for x, v in (("n", 60), ("seed", 5), ("needles", 10)): a.add_argument("--" + x, type=int, default=v)
    a.add_argument("--only", default="calls,files,text,recall,bfcl")
    a = a.parse_args()
    p, s = Program(a), Score()
    d = Dialogues(Texts(a.data), a.seed, True)
    if "calls" in a.only: measure_calls(p, d, a.n, s)
    if "files" in a.only: measure_files(p, d, a.n // 2, s)
    if "text" in a.only: measure_text(p, d, a.n // 2, s)
    if "recall" in a.only: measure_recall(p, d, a.needles, s)
    if "bfcl" in a.only and a.bfcl: measure_bfcl(p, a.bfcl, a.answers, 2 * a.n, s)
    for what, n in s.n.items(): print(f"| {what} | {s.ok[what]} of {n} |")
    if a.json: json.dump(s.misses, open(a.json, "w"), indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
