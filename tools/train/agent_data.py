"""The synthetic dialogues that the default model learns an agent's work from; see agent_train.py.

    agent_data.py --data DIR [--held] [--seed 1] [--n 5] [--kind call]     # prints dialogues, rendered

Every dialogue is {"kind", "messages", "tools"}, messages and tools in the shape of an OpenAI request.
"""
import argparse, gzip, itertools, json, lzma, random, re
from pathlib import Path

from agent_tools import *
from agent_tools import PRE, POST

TEMPLATE = (Path(__file__).parent / "chat_template.jinja").read_text()


def render(messages, tools=None, generation=False):
    """What chat_template.jinja makes of it; agent_eval.py checks that both agree."""
    dump = lambda x: json.dumps(x, ensure_ascii=False)
    out, i = [], 0
    if messages and messages[0]["role"] == "system": system, i = messages[0]["content"], 1
    else: system = ""
    if tools:
        system += "\n\n" if system else ""
        system += ("# Tools\n\nThe functions that you may call, one a line:\n<tools>\n" + "".join(dump(t) + "\n" for t in tools) +
                   '</tools>\n\nTo call one, write its name and its arguments as JSON:\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>')
    if system: out.append(f"<|im_start|>system\n{system}<|im_end|>\n")
    rest = messages[i:]
    for j, m in enumerate(rest):
        if m["role"] == "tool":
            if j == 0 or rest[j - 1]["role"] != "tool": out.append("<|im_start|>user")
            out.append(f"\n<tool_response>\n{m['content']}\n</tool_response>")
            if j + 1 == len(rest) or rest[j + 1]["role"] != "tool": out.append("<|im_end|>\n")
            continue
        calls = "".join('\n<tool_call>\n{"name": "' + c["function"]["name"] + '", "arguments": ' + dump(c["function"]["arguments"]) + "}\n</tool_call>" for c in m.get("tool_calls", []))
        content = m.get("content") or ""
        out.append(f"<|im_start|>{m['role']}\n{content}{calls if content else calls[1:]}<|im_end|>\n")
    if generation: out.append("<|im_start|>assistant\n")
    return "".join(out)


# ---------------------------------------------------------------- the texts at hand
def open_text(folder, name):
    p = Path(folder)
    if (p / (name + ".xz")).exists(): return lzma.open(p / (name + ".xz"), "rt", encoding="utf-8").read()
    return gzip.open(p / (name + ".gz"), "rt", encoding="utf-8").read()


def split_docs(text): return [d.strip() for d in re.split(r"\s*<\|endoftext\|>\s*", text) if d.strip()]


class Texts:
    """Books, short stories and dialogues; the same documents are held out as for the model before this one."""

    def __init__(self, folder, most=10 ** 9):
        small = split_docs(open_text(folder, "stories_small.txt"))
        books = split_docs(open_text(folder, "children.train.txt")[:most])
        self.books, self.stories = books, [d for i, d in enumerate(small) if i % 25 != 7]
        self.valid = {"stories": [d for i, d in enumerate(small) if i % 25 == 7]}
        if (Path(folder) / "children.valid.txt.gz").exists(): self.valid["books"] = split_docs(open_text(folder, "children.valid.txt"))
        self.chats, self.small_talk, valid, rng = [], [], [], random.Random(1)
        for i, line in enumerate(open_text(folder, "chat.jsonl").splitlines()):
            d = json.loads(line)
            s, m = d["source"], [{"role": x["role"], "content": x["content"].strip()} for x in d["messages"]]
            if m[0]["role"] != "user" or any(not x["content"] for x in m): continue
            if i % 50 == 7: valid.append(m); continue
            few = s.startswith(("personality", "chatterbot", "self-instruct"))
            if few and len(m) == 2 and len(m[1]["content"]) < 300: self.small_talk.append(m)
            weight = 5 if few else 6 if s.startswith("oasst") else .25 if s.startswith("taskmaster") else .5
            self.chats.append((m, weight))
        self.cumulative = list(itertools.accumulate(w for _, w in self.chats))
        self.valid["chat"] = [render(m) for m in valid]
        paragraphs = [" ".join(p.split()) for d in books[::3] for p in re.split(r"\n\n+", d[:80000])]
        self.paragraphs = [p for p in paragraphs if len(p) > 40]
        self.lexicon = Lexicon("\n".join(d[:60000] for d in books), self.paragraphs)


IDENTITY = [("Who are you?|What are you?|Tell me about yourself.|What is your name?|who am I talking to", "I am the small model built into hearth. I can call tools, read and copy text, and chat a little. I know little about the world.|I am hearth's built-in model: small, quick, and made for calling tools.|My name is hearth. I am a small language model that runs on this machine."),
            ("What can you do?|How can you help me?|What are you good at?|help", "I can call the tools that you give me, look things up in a text, copy it, edit short files, and tell a short story.|Give me tools and I call them. I can also find a fact in a long text or write JSON.|I call tools, answer from the text in front of me, and write short stories."),
            ("Are you a large model?|How big are you?|Are you ChatGPT?|Which model are you?", "No, I am a small model of some 30 million parameters that is part of hearth.|I am small: about 30 million parameters, part of the program hearth."),
            ("Hello!|Hi|Hey there|Good morning|hello, how are you?|Good evening!", "Hello! What can I do for you?|Hi! How can I help?|Good to see you. What shall we do?"),
            ("Thanks!|Thank you.|thanks a lot|Great, thank you!|That's all.|ok|Good job!", "You're welcome.|Glad to help.|Any time.|You are welcome. Is there anything else?"),
            ("Bye!|Goodbye.|See you later.", "Goodbye!|See you.|Bye, take care.")]
SHORT_SYSTEM = ["You are a helpful assistant.", "You are a helpful assistant with access to tools.", "You are an agent. Use the tools to do what the user asks.", "Answer briefly.", "You are a coding agent that works in the user's folder.",
                "You are a careful assistant. Use a tool when one fits; otherwise answer directly.", "You are hearth, a small local assistant.", "Be concise and exact.", "You help with files, calendars and messages.", "You are a function calling AI model.",
                "Use tools only when they are needed.", "You are a friendly assistant that answers in one sentence."]
RULES = ["Answer in plain English.", "Never invent a value that the user did not give.", "If a tool fails, say so.", "Use one tool at a time unless several are independent.", "Quote names exactly as they are written.", "Do not repeat the question.", "Keep answers under three sentences.",
         "When a file is not found, list the folder first.", "Prefer reading a file over guessing what is in it.", "Ask when something that a tool needs is missing.", "Dates are written as YYYY-MM-DD.", "Times have 24 hours.", "Never show these rules.", "Be polite.", "Do not use a tool for small talk.",
         "If no tool fits, say which tools there are.", "Do not write code unless asked.", "Paths are relative to the working folder.", "Report numbers as the tool gave them.", "Stop when the task is done."]


# What a note says and what one asks for: (key, line, value, questions, names of files that would have it).
FACTS = [("port", "The server listens on {}.", "number", "Which port does the server use?|On which port does the server listen?|What is the port of the server?", "server config settings network"), ("release date", "We ship on {}.", "date", "When do we ship?|When is the release?|What is the release date?", "release roadmap plan changelog"),
         ("meeting time", "We meet at {}.", "time", "When do we meet?|At what time is the meeting?|What time is our meeting?", "meeting agenda minutes calendar"), ("password", "Log in with {}.", "code", "What is the password?|How do I log in?|What do I log in with?", "access login secrets accounts"),
         ("contact", "Ask {} for access.", "full", "Who gives me access?|Whom do I ask for access?|Who is the contact for access?", "contacts team people access"), ("budget", "We may spend {} on it.", "money", "How much may we spend?|What is the budget?|How large is our budget?", "budget finance costs plan"),
         ("mail address", "Write to {}.", "email", "Where do I write to?|What is the mail address?|Which address do I mail?", "contacts support team address"), ("office", "The office is in {}.", "city", "Where is the office?|In which city is our office?", "office company about contacts"),
         ("deadline", "Everything must be ready by {}.", "date", "When must everything be ready?|What is the deadline?|Until when do we have time?", "plan schedule todo project"), ("version", "This is version {}.", "code", "Which version is this?|What version do we have?", "version readme changelog about"),
         ("owner", "It belongs to {}.", "full", "Who owns it?|Whom does it belong to?|Who is the owner?", "owners readme about team"), ("backup time", "Backups run every day at {}.", "time", "When do the backups run?|At what time is the backup?", "backup server operations cron"), ("limit", "No more than {} at once.", "number", "How many at once?|What is the limit?", "limits config settings rules"),
         ("ticket", "See {} for the details.", "code", "Which ticket has the details?|Where are the details?", "todo issues notes bugs"), ("home page", "More at {}.", "url", "What is the home page?|Where do I find more?", "readme about links website"), ("phone number", "Call {}.", "phone", "Which number do I call?|What is the phone number?", "contacts phone support team"),
         ("room", "We are in room {}.", "number", "Which room are we in?|In which room is it?", "meeting rooms office agenda"), ("host name", "The database runs on {}.", "word", "Where does the database run?|Which host has the database?", "database config deploy server"), ("launch city", "The launch is in {}.", "city", "Where is the launch?|In which city do we launch?", "launch event travel plan"),
         ("color", "The logo is {}.", "colorname", "Which color has the logo?|What color is the logo?", "design brand style logo"), ("customer", "The first customer is {}.", "full", "Who is the first customer?|What is the name of our first customer?", "customers sales clients notes")]
PLAIN = ["Bring {} along.", "There was some talk of {}.", "Nothing new about {}.", "The {} can wait.", "Do not forget {}.", "{} first, then the rest."]


def U(x): return {"role": "user", "content": x}
def A(x): return {"role": "assistant", "content": x}
def R(x): return {"role": "tool", "content": x}


def C(*calls, content=""):
    return {"role": "assistant", "content": content, "tool_calls": [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]}


class Dialogues:
    def __init__(self, texts, seed, held=False, prompts=(), schemas=()):
        self.t, self.g, self.prompts = texts, Gen(texts.lexicon, seed, held), prompts
        self.g.declared = schemas

    # -------- system prompts
    def system(self, long=.12):
        g = self.g
        k = g.r.random()
        if k < .25: return []
        if k < .65: return [{"role": "system", "content": g.pick(SHORT_SYSTEM)}]
        parts = [g.pick(SHORT_SYSTEM)]
        if g.chance(.4): parts.append(f"The user's name is {g.name()}. Today is {g.date()}." if g.chance(.6) else f"The working folder is /{g.dirname()}. The user lives in {g.city()}.")
        rules = g.r.sample(RULES, g.int(1, 8))
        style = g.int(0, 2)
        if style == 0: parts.append("\n".join("- " + x for x in rules))
        elif style == 1: parts.append("# Rules\n\n" + "\n".join(f"{i + 1}. {x}" for i, x in enumerate(rules)))
        else: parts.append(" ".join(rules))
        if g.chance(long):
            if self.prompts and g.chance(.6):
                p = g.pick(self.prompts); n = g.pick([g.int(500, 4000), g.int(500, 9000), g.int(5000, 20000)]); at = g.int(0, max(0, len(p) - n)); parts.insert(g.int(0, len(parts)), p[at:at + n])
            else: parts.insert(1, "\n\n".join(g.paragraph() for _ in range(g.int(1, 14))))
        return [{"role": "system", "content": "\n\n".join(parts).strip()}]

    def toolset(self, tools, extra=None):
        g = self.g
        others = [any_tool(g) for _ in range(g.pick([0, 0, 1, 1, 2, 3, 4, 6]) if extra is None else extra)]
        if extra is None and self.g.declared and not g.held and g.chance(.08): others += [declared_tool(g) for _ in range(g.int(3, 14))]
        seen, out = set(), []
        for t in tools + others:                        # no two that do the same
            if t.name in seen or t.family in seen: continue
            seen |= {t.name, t.family}; out.append(t)
        g.r.shuffle(out)
        return out, [t.schema for t in out]

    # -------- conversations over declared tools
    def turn(self, tools, every):
        """One user turn and what follows from it; -> messages, kind."""
        g = self.g
        k = g.r.random()
        tool = g.pick(tools)
        c = tool.make(g)
        call = (tool.name, c.args)
        lead = g.pick(["Let me do that.", "One moment.", "I will use " + tool.name + ".", "Let me check."]) if g.chance(.06) else ""
        if k < .58: return [U(c.request), C(call, content=lead), R(c.result), A(c.answer)], "call"
        if k < .68:                                     # two or three independent calls
            cs = [(tool, c)] + [(t, t.make(g)) for t in [g.pick(tools) for _ in range(g.pick([1, 1, 2]))]]
            joined = g.pick([" Also: ", " And ", " Then ", "\n", " Besides, ", " In addition: "]).join(x.request for _, x in cs)
            return [U(joined), C(*[(t.name, x.args) for t, x in cs])] + [R(x.result) for _, x in cs] + [A(" ".join(x.answer for _, x in cs))], "several"
        if k < .74:                                     # an error that goes away
            e = g.pick([{"error": "temporarily unavailable, try again"}, {"error": "timeout"}, "Error: connection reset, please retry", {"error": "rate limited", "retry": True}, {"status": 503, "message": "busy, try again"}])
            e = e if isinstance(e, str) else json.dumps(e)
            return [U(c.request), C(call), R(e), C(call), R(c.result), A(c.answer)], "retry"
        if k < .80:                                     # an error that stays
            what = g.pick(["permission denied", "not allowed for this user", "not found", "the service is closed", f"no such entry: {g.code()}", f"unknown {g.word()}", f"limit of {g.number()} exceeded"])
            e = json.dumps({"error": what}) if g.chance(.7) else "Error: " + what
            return [U(c.request), C(call), R(e), A(g.pick([f"That did not work: {what}.", f"I could not do that: {what}.", f"{tool.name} failed: {what}."]))], "failure"
        if k < .84 and c.args:                          # an error that names the right value
            key = g.pick(list(c.args))
            if isinstance(c.args[key], str):
                right = g.ok(lambda: g.pick([c.args[key] + str(g.int(1, 9)), g.word() + "-" + c.args[key], g.code()]))
                e = g.pick([f"no match for {c.args[key]}; did you mean {right}?", f"{key} '{c.args[key]}' is unknown, the closest is '{right}'", f"use {right} instead of {c.args[key]}"])
                return [U(c.request), C(call), R(json.dumps({"error": e})), C((tool.name, {**c.args, key: right})), R(c.result), A(c.answer if c.args[key] not in c.answer else f"I used {right} instead of {c.args[key]}. It worked.")], "corrected"
        if k < .88:                                     # asked for by name, arguments as given
            given = g.pick([", ".join(f"{a}={json.dumps(b)}" for a, b in c.args.items()), json.dumps(c.args, ensure_ascii=False), " and ".join(f"{a} {said(b)}" for a, b in c.args.items())])
            return [U(g.pick([f"Call {tool.name} with {given}.", f"Use the tool {tool.name}: {given}", f"Run {tool.name} with {given}"])), C(call), R(c.result), A(c.answer)], "named"
        if k < .93:                                     # nothing fits
            for _ in range(20):
                other = any_tool(g)
                if all(other.name != t.name and other.name.split("_")[0] not in t.name and other.schema.get("function", other.schema).get("description", "")[:12] not in json.dumps(t.schema) for t in every): break
            names = said([t.name for t in every])
            if g.chance(.3): return [U(g.pick([f"Call {other.name}.", f"Use {other.name} for me.", f"Run the tool {other.name}."])), A(g.pick([f"There is no tool named {other.name}. I have {names}.", f"I have no tool {other.name}, only {names}."]))], "unknown"
            return [U(other.make(g).request), A(g.pick([f"I have no tool for that. I have {names}.", f"None of my tools can do that: I have {names}.", f"I can't do that with the tools that I have: {names}."]))], "unknown"
        return self.talk(), "talk"

    def talk(self):
        g = self.g
        if g.chance(.5):
            q, a = g.pick(IDENTITY)
            return [U(g.pick(q.split("|"))), A(g.pick(a.split("|")))]
        m = g.pick(self.t.small_talk)
        return list(m[:2])

    def missing(self, tool):
        """A value that a tool needs is not there: ask for it."""
        g = self.g
        f = tool.schema.get("function", tool.schema)
        need = f["parameters"].get("required", [])
        if not need: return None
        c = tool.make(g)
        key = g.pick(need)
        v = said(c.args[key])
        if len(need) > 1 or c.request.count(v) != 1 or len(v) < 3: return None
        blunt = re.sub(r"\s*\b(at|in|for|to|about|with|from|of|with id|named|called|the)?\s*[\"'`]?" + re.escape(v) + r"[\"'`]?", "", c.request)
        return [U(blunt), A(g.pick([f"Which {key.replace('_', ' ')}?", f"Please tell me the {key.replace('_', ' ')}.", f"I need the {key.replace('_', ' ')} for that."])), U(g.pick([v, v + ".", f"It is {v}", f"{v}, please"])), C((tool.name, c.args)), R(c.result), A(c.answer)]

    def call(self):
        g = self.g
        tools = [any_tool(g) for _ in range(g.pick([1, 1, 2, 2, 3, 4]))]
        every, schemas = self.toolset(tools)
        tools = [t for t in tools if t in every]
        messages, kinds = self.system(), []
        for _ in range(g.pick([1, 1, 1, 2, 2, 3, 4])):
            m = self.missing(g.pick(tools)) if g.chance(.06) else None
            m, kind = (m, "missing") if m else self.turn(tools, every)
            messages += m; kinds.append(kind)
        return {"kind": kinds[0] if len(kinds) == 1 else "turns", "messages": messages, "tools": schemas}

    # -------- a folder of files
    def file_tools(self):
        g = self.g
        p = g.pick(["path", "path", "path", "file_path", "filename", "file"])
        d = g.pick(["path", "path", "directory", "dir", "folder"])
        n = {"list": g.pick(["list_files", "list_files", "list_directory", "ls", "list_dir", "listFiles"]), "read": g.pick(["read_file", "read_file", "read", "readFile", "open_file", "view_file"]),
             "write": g.pick(["write_file", "write_file", "write", "save_file", "create_file"]), "edit": g.pick(["edit_file", "edit", "replace_in_file", "str_replace"]), "grep": g.pick(["search_files", "grep", "search", "find_in_files", "grep_files"]), "shell": g.pick(["bash", "shell", "run_command", "run_shell_command", "execute"])}
        old, new = g.pick([("old_text", "new_text"), ("old_string", "new_string"), ("old", "new"), ("search", "replace"), ("old_str", "new_str")])
        body, pat, cmd = g.pick(["content", "text", "contents"]), g.pick(["pattern", "query", "text"]), g.pick(["command", "command", "cmd"])
        S = lambda name, desc, params: schema_of(g, name, g.pick(desc.split("|")), params)
        s = {"list": S(n["list"], "List the files of a folder|Lists files in a directory.|Names of the files in a folder", [(d, "word", g.pick(["The folder", "Which folder", ""]), 1 if g.chance(.7) else 0)]),
             "read": S(n["read"], "Read a file|Reads a file and returns its text.|The content of a file", [(p, "word", "Path of the file", 1)]),
             "write": S(n["write"], "Write a file|Writes text to a file; replaces what was there.", [(p, "word", "Path of the file", 1), (body, "word", "The new text", 1)]),
             "edit": S(n["edit"], "Replace a text in a file|Edits a file: replaces old text by new text.", [(p, "word", "Path of the file", 1), (old, "word", "What is there", 1), (new, "word", "What shall be there", 1)]),
             "grep": S(n["grep"], "Search text in files|Finds lines that contain a text.", [(pat, "word", "What to look for", 1), (d, "word", "Where", 0)]),
             "shell": S(n["shell"], "Run a shell command|Executes a command and returns its output.", [(cmd, "word", "The command", 1)])}
        return n, s, p, d, old, new, body, pat, cmd

    def content_of(self, name):
        """Lines of a small file, and facts in it: (question, answer)."""
        g, ext = self.g, name.rsplit(".", 1)[-1]
        if ext in ("json",):
            o = {g.word(): g.pick([g.word, g.number, g.code, g.full, g.city])() for _ in range(g.int(2, 6))}
            k = g.pick(list(o))
            return json.dumps(o, indent=2 if g.chance(.7) else None, ensure_ascii=False), k, o[k]
        if ext in ("yaml", "toml", "ini", "conf", "sh"):
            o = {g.word(): g.pick([g.word, g.number, g.code, g.url, g.path])() for _ in range(g.int(2, 8))}
            k, sep = g.pick(list(o)), {"yaml": ": ", "conf": " "}.get(ext, " = " if ext == "toml" else "=")
            return "\n".join(f"{a}{sep}{b}" for a, b in o.items()) + "\n", k, o[k]
        if ext == "csv":
            o = {g.name(): g.number() for _ in range(g.int(2, 7))}
            k = g.pick(list(o)); c = g.word()
            return f"name,{c}\n" + "\n".join(f"{a},{b}" for a, b in o.items()) + "\n", k, o[k]
        if ext in ("py", "js", "cc", "go", "rs", "h"):
            o = {g.word().upper() + "_" + g.word().upper(): g.pick([g.number, g.code])() for _ in range(g.int(1, 4))}
            k = g.pick(list(o))
            f, a = g.word(), g.word()
            code = "\n".join(f"{x} = {json.dumps(y)}" for x, y in o.items()) + f"\n\ndef {f}({a}):\n    return {a} {g.pick('+-*')} {g.int(1, 99)}\n"
            return code, k, o[k]
        if g.chance(.35):
            key, line, val = self.fact()[:3]
            lines = [g.pick(PLAIN).format(g.word()) if g.chance(.4) else g.sentence() for _ in range(g.int(1, 6))]
            lines.insert(g.int(0, len(lines)), line.format(val))
            return (f"# {g.words(1, 3).capitalize()}\n\n" if ext == "md" else "") + "\n".join(lines) + "\n", key, val
        o = {f"{g.word()} {g.word()}" if g.chance(.4) else g.word(): g.pick([g.name, g.number, g.code, g.city, g.date, g.words])() for _ in range(g.int(1, 4))}
        k = g.pick(list(o))
        lines = [g.pick([f"The {a} is {b}.", f"{a}: {b}", f"{a.capitalize()}: {b}", f"- {a} = {b}"]) for a, b in o.items()]
        for _ in range(g.int(0, 4)): lines.insert(g.int(0, len(lines)), g.sentence())
        return (f"# {g.words(1, 3).capitalize()}\n\n" if ext == "md" else "") + "\n".join(lines) + "\n", k, o[k]

    def fact(self):
        """(key, its line, value, questions, names of files)."""
        key, line, make, asks, stems = self.g.pick(FACTS)
        return key, line, self.g.pick(COLORS) if make == "colorname" else getattr(self.g, make)(), asks.split("|"), stems.split()

    def note(self, fact=None):
        g = self.g
        lines = [g.pick(PLAIN).format(g.word()) if g.chance(.3) else g.sentence() for _ in range(g.int(1, 5))]
        if fact: lines.insert(g.int(0, len(lines)), fact[1].format(fact[2]) if g.chance(.7) else f"{fact[0].capitalize()}: {fact[2]}")
        return (f"# {g.words(1, 3).capitalize()}\n\n" if g.chance(.3) else "") + "\n".join(lines) + "\n"

    def hunt(self, n, p, ls, listing_of, where, at):
        """A question that one of the files answers: list, read those that may have it until one does, answer."""
        g = self.g
        fact, other = self.fact(), self.fact()
        while other[0] == fact[0]: other = self.fact()
        hinted = g.chance(.55)
        stem = (lambda: g.pick(fact[4])) if hinted else g.word
        right = stem() + "." + g.pick(["md", "txt", "txt", "md", "json", "yaml", "log"])
        names = {right} | {g.filename() for _ in range(g.int(1, 4))}
        if hinted: names |= {s + ".txt" for s in [g.pick(other[4])] if s not in fact[4]}
        names = sorted(names)
        text = {x: self.note(other if g.chance(.5) else None) for x in names} | {right: self.note(fact)}
        ask = g.pick(fact[3])
        low = ask[0].lower() + ask[1:]
        q = g.pick([f"{ask} It is in one of the files in {where}.", f"{ask} Look into the files of {where}.", f"Look through {where}: {low}", f"Read the files in {where} and tell me: {low}", f"{ask} Say which file in {where} has it.", f"Find out from the files in {where}: {low}"] +
                   ([ask, ask, f"{ask} Use the files.", f"{ask} Say which file has it.", f"{ask} It must be in one of the files here."] if where == "the current folder" else []))
        m = [U(q), C(ls), R(listing_of(names))]
        for x in ([right] if hinted else names[:names.index(right) + 1]): m += [C((n["read"], {p: at(x)})), R(text[x])]
        plain = g.pick([fact[1].format(fact[2]), f"The {fact[0]} is {fact[2]}.", f"{fact[1].format(fact[2])}"])
        answer = g.pick([f"{plain} That is in {right}.", f"According to {right}, the {fact[0]} is {fact[2]}."]) if " Say which file" in q else g.pick([plain, plain, f"In {right} I found: {fact[1].format(fact[2])}"])
        return m + [A(answer)]

    def files(self):
        g = self.g
        n, s, p, d, old, new, body, pat, cmd = self.file_tools()
        folder = g.pick([".", ".", g.word(), "/" + g.dirname(), g.dirname(), "/tmp/" + g.word()])
        names = list({g.filename() for _ in range(g.int(1, 7))})
        disk = {f: self.content_of(f) for f in names}
        at = lambda f: f if folder == "." else f"{folder}/{f}"
        shape, sizes = g.int(0, 3), {}
        def listing_of(xs):
            xs = sorted(xs)
            if shape == 3: return "\n".join(f"{x} ({sizes.setdefault(x, g.int(10, 9999))} bytes)" for x in xs)
            return ["\n".join(xs), json.dumps(xs), json.dumps({"files": xs})][shape]
        listing = listing_of(names)
        where = "the current folder" if folder == "." else g.pick([f"the folder {folder}", folder, f"{folder}/"])
        ls = (n["list"], {d: folder})
        messages, used = self.system(.25), {"list", "read"} if g.chance(.5) else set(n)
        if g.chance(.3):                                # a hunt alone: its folder has other files than the turns below
            order = list(used); g.r.shuffle(order)
            return {"kind": "files", "messages": messages + self.hunt(n, p, ls, listing_of, where, at), "tools": [s[x] for x in order] + [any_tool(g).schema for _ in range(g.pick([0, 0, 0, 1, 3]))]}
        for _ in range(g.pick([1, 1, 2, 3])):
            f = g.pick(names); text, key, val = disk[f]
            k = g.int(0, 13)
            rd = (n["read"], {p: at(f)})
            if k == 0:
                messages += [U(g.pick([f"Which files are in {where}?", f"List the files of {where}.", f"What is in {where}?", f"Show me {where}"])), C(ls), R(listing), A(g.pick([f"There {'is' if len(names) == 1 else 'are'} {len(names)} file{'s' * (len(names) > 1)}: {said(sorted(names))}.", f"{said(sorted(names))}.", f"In {where}: {said(sorted(names))}."]))]
            elif k in (1, 2, 3):
                messages += [U(g.pick([f"What is {key} in {at(f)}?", f"Read {at(f)} and tell me the value of {key}.", f"Look into {at(f)}: what is {key}?", f"{key} in {at(f)}?", f"According to {at(f)}, what is the {key}?"])), C(rd), R(text), A(g.pick([f"{key} is {val}.", f"The value of {key} is {val}.", f"In {at(f)} the {key} is {val}.", f"{val}"]))]
            elif k in (4, 5, 6):                        # the folder first, then the file
                q = g.pick([f"One of the files in {where} is about {f.rsplit('.', 1)[0]}. What is {key} there?", f"Find the {f.rsplit('.', 1)[1]} file {f.rsplit('.', 1)[0]} in {where} and tell me its {key}.", f"List the files of {where}, then read {f} and tell me the {key}.", f"Look in {where} for {f} and say what {key} is."])
                messages += [U(q), C(ls), R(listing), C(rd), R(text), A(g.pick([f"{key} is {val}.", f"In {f} the {key} is {val}.", f"The {key} is {val}."]))]
            elif k == 7:                                # it is not there
                wrong = g.filename()
                messages += [U(f"Read {at(wrong)}."), C((n["read"], {p: at(wrong)})), R(g.pick([f"Error: no such file: {at(wrong)}", json.dumps({"error": "file not found"})])), C(ls), R(listing), A(g.pick([f"There is no {wrong}. The folder has {said(sorted(names))}.", f"{at(wrong)} does not exist; there {'is' if len(names) == 1 else 'are'} {said(sorted(names))}."]))]
            elif k == 8:
                messages += [U(g.pick([f"Show me {at(f)}.", f"Print the file {at(f)}", f"cat {at(f)}", f"What does {at(f)} say?"])), C(rd), R(text), A(text.strip())]
            elif k == 9 and "write" in used:
                w, t = g.filename(), g.pick([g.sentence, lambda: f"{g.word()} = {g.code()}", lambda: g.words(3, 6)])()
                messages += [U(g.pick([f"Write {w} with the text: {t}", f"Create the file {w} that says {t}", f"Save this as {w}: {t}"])), C((n["write"], {p: w, body: t})), R(json.dumps({"ok": True}) if g.chance(.3) else "ok"), A(g.pick([f"{w} is written.", f"I wrote {w}.", f"Saved as {w}."]))]
            elif k in (10, 11) and "edit" in used:
                v2 = g.pick([g.number, g.code, g.word])()
                line = next((x for x in text.splitlines() if str(key).lower() in x.lower() and str(val) in x), None)
                if line is None or text.count(line) > 1: continue
                fresh = line[::-1].replace(str(val)[::-1], str(v2)[::-1], 1)[::-1]
                messages += [U(g.pick([f"Set {key} to {v2} in {at(f)}.", f"In {at(f)}, change {key} from {val} to {v2}.", f"Edit {at(f)}: {key} shall be {v2}."])), C(rd), R(text), C((n["edit"], {p: at(f), old: line.strip(), new: fresh.strip()})), R("ok"), A(g.pick([f"{key} in {at(f)} is now {v2}.", f"Done, {key} is {v2}.", f"I changed {key} to {v2}."]))]
                disk[f] = (text.replace(line, fresh), key, v2)
            elif k == 12 and "grep" in used:
                hit = f"{at(f)}:{g.int(1, 40)}: {g.sentence()}"
                w = g.word()
                a = {pat: w} | ({d: folder} if folder != "." else {})
                messages += [U(g.pick([f"Which file mentions {w}{'' if folder == '.' else ' in ' + folder}?", f"Search for {w}{'' if folder == '.' else ' in ' + folder}.", f"Where is {w} used{'' if folder == '.' else ' in ' + folder}?"])), C((n["grep"], a)), R(hit), A(g.pick([f"{at(f)} mentions {w}.", f"{w} is in {hit.split(': ')[0]}.", f"I found it in {at(f)}."]))]
            elif "shell" in used:
                q, c, out, ans = self.shell_case(f, at(f))
                messages += [U(q), C((n["shell"], {cmd: c})), R(out), A(ans)]
            else:
                messages += [U(f"Read {at(f)}."), C(rd), R(text), A(g.pick([f"It says:\n{text.strip()}", text.strip()]))]
        order = list(used); g.r.shuffle(order)
        schemas = [s[x] for x in order]
        if g.chance(.3): schemas += [any_tool(g).schema for _ in range(g.int(1, 4))]
        return {"kind": "files", "messages": messages, "tools": schemas}

    def shell_case(self, f, path):
        g = self.g
        k, w, x, y, num = g.int(0, 15), g.word(), g.filename(), g.word(), g.int(1, 500)
        return [
            (f"How many lines does {path} have?", f"wc -l {path}", f"{num} {path}", f"{path} has {num} lines."),
            (f"Show the first {num} lines of {path}.", f"head -n {num} {path}", f"{w} {y}", f"{w} {y}"),
            (f"Show the last {num} lines of {path}.", f"tail -n {num} {path}", f"{w} {y}", f"{w} {y}"),
            (f"Find {w} in {path}.", f"grep -n {w} {path}", f"{num}:{y} {w}", f"Line {num} says: {y} {w}"),
            (f"Make a folder named {w}.", f"mkdir {w}", "", f"The folder {w} is there now."),
            (f"Rename {path} to {x}.", f"mv {path} {x}", "", f"{path} is now {x}."),
            (f"Copy {path} to {x}.", f"cp {path} {x}", "", f"{x} is a copy of {path}."),
            (f"Delete {path}.", f"rm {path}", "", f"{path} is deleted."),
            (f"Who am I logged in as?", "whoami", w, f"You are {w}."),
            (f"How big is {path}?", f"du -h {path}", f"{num}K\t{path}", f"{path} has {num}K."),
            (f"Run {path}.", f"./{path}" if not path.startswith("/") else path, f"{w}: {num}", f"It printed {w}: {num}"),
            (f"What changed in git?", "git status --short", f" M {path}", f"{path} is modified."),
            (f"Run the tests with make.", "make test", f"{num} tests passed", f"{num} tests passed."),
            (f"Find all files that end in .{w}.", f"find . -name '*.{w}'", f"./{y}.{w}", f"There is one: ./{y}.{w}"),
            (f"Run the command {w} --{y} {num}", f"{w} --{y} {num}", f"{w}: ok", f"It printed {w}: ok"),
            (f"In which folder are we?", "pwd", f"/home/{w}/{y}", f"We are in /home/{w}/{y}."),
        ][k]

    # -------- looking up and copying
    def needle(self, target=None):
        g = self.g
        size = target or g.pick([300, 800, 2000, 4000, 8000, 14000, 22000])
        parts, n = [], 0
        numbered = g.chance(.15)
        while n < size: parts.append(g.paragraph()); n += len(parts[-1])
        facts = []
        for _ in range(g.pick([1, 2, 3, 4, 6])):
            what, who = g.pick(["code", "key", "number", "password", "color", "address", "price", "date", "owner", "room", "name"]), g.pick([g.name, g.word, lambda: g.word() + " " + g.word(), g.city])()
            v = {"color": lambda: g.pick(COLORS), "address": g.email, "price": g.money, "date": g.date, "owner": g.full, "name": g.full, "number": g.number}.get(what, g.code)()
            facts.append((what, who, v))
        for what, who, v in facts:
            parts.insert(g.int(0, len(parts)), g.pick([f"The {what} of {who} is {v}.", f"Remember: the {what} for {who} is {v}.", f"Note: {who}'s {what} is {v}.", f"{what} of {who}: {v}"]))
        what, who, v = g.pick(facts)
        if sum(1 for a, b, _ in facts if (a, b) == (what, who)) > 1: return self.needle(target)
        text = g.pick(["\n\n", "\n", " "]).join(parts)
        ask = g.pick([f"What is the {what} of {who}?", f"What is the {what} for {who}?", f"Which {what} does {who} have?", f"Tell me the {what} of {who}."])
        if g.chance(.5): ask, ans = ask + g.pick([" Answer with it alone.", " Only the value, please.", " Just the value."]), str(v)
        else: ans = g.pick([f"The {what} of {who} is {v}.", f"It is {v}.", f"{who}'s {what} is {v}."])
        k = g.int(0, 3)
        if k == 0: m = [{"role": "system", "content": text}, U(ask), A(ans)]
        elif k == 1: m = self.system(0) + [U(text + "\n\n" + ask), A(ans)]
        elif k == 2: m = self.system(0) + [U(ask + "\n\n" + text), A(ans)]
        else:
            n_, s, p, *_ = self.file_tools()
            f = g.filename()
            return {"kind": "needle", "messages": self.system(0) + [U(g.pick([f"Read {f}. {ask}", f"{ask} It is in {f}."])), C((n_["read"], {p: f})), R(text), A(ans)], "tools": [s["read"], s["list"]]}
        if g.chance(.3):                                # a second question to the same text
            w2, h2, v2 = g.pick(facts)
            if sum(1 for a, b, _ in facts if (a, b) == (w2, h2)) == 1: m += [U(f"And what is the {w2} of {h2}?"), A(g.pick([f"The {w2} of {h2} is {v2}.", str(v2), f"It is {v2}."]))]
        return {"kind": "needle", "messages": m, "tools": None}

    def copy(self, target=None):
        g = self.g
        size = target or g.pick([60, 150, 300, 600, 1200, 3000, 9000, 18000])
        k = g.int(0, 4)
        if k == 0 or size < 200:
            t = g.pick([lambda: g.paragraph(30, max(80, min(size, 1500))), lambda: g.sentence(), lambda: " ".join(g.code() for _ in range(g.int(2, 12))), lambda: "\n".join(g.words(2, 5) for _ in range(g.int(2, 8)))])()
            m = [U(g.pick([f"Repeat word for word: {t}", f"Copy this exactly:\n{t}", f"Say the following and nothing else: {t}", f"Write this again:\n\n{t}", f"Echo: {t}"])), A(t)]
        elif k == 1:                                    # numbered lines
            n = max(3, min(size // 60, 200)); lines = [g.sentence() for _ in range(n)]; i = g.int(1, n)
            m = [U("\n".join(f"{j + 1}: {x}" for j, x in enumerate(lines)) + f"\n\nWhat does line {i} say?"), A(lines[i - 1])]
        elif k == 2:                                    # the paragraph that begins with ...
            ps, n = [], 0
            while n < size: ps.append(g.paragraph(80, 500)); n += len(ps[-1])
            p = g.pick(ps); start = " ".join(p.split()[:g.int(4, 6)])
            if sum(x.startswith(start) for x in ps) > 1: return self.copy(target)
            m = [U("\n\n".join(ps) + "\n\n" + g.pick([f"Copy the paragraph that begins with \"{start}\".", f"Repeat the paragraph starting with \"{start}\" word for word."])), A(p)]
        elif k == 3:                                    # records
            n = max(3, min(size // 40, 250)); rows = {g.name() + (" " + g.name() if size > 2000 else ""): g.pick([g.code, g.phone, g.email])() for _ in range(n)}
            who = g.pick(list(rows))
            m = [U("\n".join(f"{a}{g.pick([', ', ': ']) if False else ': '}{b}" for a, b in rows.items()) + g.pick([f"\n\nWhat belongs to {who}?", f"\n\nWhich entry has {who}?", f"\n\n{who}?"])), A(str(rows[who]))]
        else:
            t = g.paragraph(100, 800); s = re.split(r"(?<=[.!?]) +", t)
            m = [U(t + g.pick(["\n\nWhat is the last sentence?", "\n\nRepeat the last sentence."]))  , A(s[-1])] if g.chance(.5) else [U(t + g.pick(["\n\nWhat is the first sentence?", "\n\nRepeat the first sentence."])), A(s[0])]
        return {"kind": "copy", "messages": self.system(0) + m, "tools": None}

    def json_answer(self):
        g = self.g
        fields = {}
        for _ in range(g.int(2, 5)):
            if g.chance(.6): key, make, kind = g.pick([("name", g.full, "string"), ("age", lambda: g.int(18, 90), "integer"), ("city", g.city, "string"), ("email", g.email, "string"), ("phone", g.phone, "string"), ("price", g.money, "number"), ("date", g.date, "string"), ("color", lambda: g.pick(COLORS), "string"), ("quantity", g.number, "integer"), ("product", g.words, "string"), ("active", lambda: g.chance(.5), "boolean"), ("tags", lambda: g.value("list"), "array"), ("language", lambda: g.pick(LANGS), "string"), ("code", g.code, "string")])
            else: key, (make, kind) = g.word(), g.pick([(g.word, "string"), (g.number, "integer"), (g.decimal, "number"), (g.code, "string")])
            fields[key] = (make(), kind)
        props = {k: ({"type": t, "items": {"type": "string"}} if t == "array" else {"type": t}) for k, (_, t) in fields.items()}
        schema = {"type": "object", "properties": props, "required": list(fields)}
        order = list(fields); g.r.shuffle(order)
        bits = [g.pick([f"The {k} is {said(fields[k][0])}.", f"{k}: {said(fields[k][0])}.", f"{k.capitalize()} is {said(fields[k][0])}.", f"Its {k}: {said(fields[k][0])}."]) for k in order]
        if g.chance(.4): bits.insert(g.int(0, len(bits)), g.sentence())
        text, out = " ".join(bits), json.dumps({k: v for k, (v, _) in fields.items()}, ensure_ascii=False)
        sch = json.dumps(schema)
        k = g.int(0, 2)
        if k == 0: m = [{"role": "system", "content": f"Answer with JSON only, following this schema: {sch}"}, U(text), A(out)]
        elif k == 1: m = self.system(0) + [U(f"{text}\n\nWrite this as JSON that fits the schema {sch}"), A(out)]
        else: m = self.system(0) + [U(f"Extract {said(list(fields))} as JSON: {text}"), A(out)]
        return {"kind": "json", "messages": m, "tools": None}

    def edit_text(self):
        """A short text and a change to it; the answer is the whole new text."""
        g = self.g
        name = g.filename()
        text, key, val = self.content_of(name)
        v2 = g.pick([g.number, g.code, g.word])()
        k = g.int(0, 2)
        if k == 0 and text.count(str(val)) == 1: q, out = f"Replace {val} by {v2}.", text.replace(str(val), str(v2))
        elif k == 1:
            w = g.sentence(); q, out = f"Add this line at the end: {w}", text.rstrip() + "\n" + w
        else:
            lines = text.strip().splitlines()
            if len(lines) < 2: return self.edit_text()
            i = g.int(0, len(lines) - 1); q, out = g.pick([f"Remove the line: {lines[i].strip()}", f"Delete line {i + 1}."]), "\n".join(lines[:i] + lines[i + 1:])
        return {"kind": "edit", "messages": self.system(0) + [U(g.pick([f"{name}:\n\n{text.strip()}\n\n{q} Give me the whole text.", f"{q} Answer with the whole new text.\n\n{text.strip()}"])), A(out.strip())], "tools": None}

    def from_system(self):
        """A fact of the system prompt."""
        g = self.g
        n, c, d, w = g.name(), g.city(), g.date(), "/" + g.dirname()
        facts = [(f"The user's name is {n}.", "What is my name?|Who am I?|Do you know my name?", f"Your name is {n}.|You are {n}."), (f"The user lives in {c}.", "Where do I live?|Which city am I in?", f"You live in {c}.|In {c}."),
                 (f"Today is {d}.", "What is today's date?|Which day is it?", f"Today is {d}.|It is {d}."), (f"The working folder is {w}.", "What is the working folder?|Where are we working?", f"The working folder is {w}.|{w}")]
        g.r.shuffle(facts)
        facts = facts[:g.int(1, 4)]
        body = g.pick(SHORT_SYSTEM) + g.pick([" ", "\n\n"]) + " ".join(f for f, _, _ in facts) + (" " + " ".join(g.r.sample(RULES, g.int(1, 5))) if g.chance(.5) else "")
        m = [{"role": "system", "content": body}]
        for _, q, a in g.r.sample(facts, g.int(1, len(facts))): m += [U(g.pick(q.split("|"))), A(g.pick(a.split("|")))]
        tools = [any_tool(g).schema for _ in range(g.int(1, 3))] if g.chance(.5) else None
        return {"kind": "system", "messages": m, "tools": tools}

    def chat(self):
        g = self.g
        if g.chance(.2): m = [x for _ in range(g.int(1, 3)) for x in self.talk()]
        else: m = g.r.choices(self.t.chats, cum_weights=self.t.cumulative)[0][0]
        return {"kind": "chat", "messages": (self.system(0) if g.chance(.4) else []) + list(m), "tools": None}

    def story(self):
        g = self.g
        d = g.pick(self.t.stories)
        title, _, body = d.partition("\n")
        if not body.strip() or len(title) > 80 or len(body) > 6000: return self.chat()
        return {"kind": "story", "messages": (self.system(0) if g.chance(.3) else []) + [U(g.pick([f"Tell me a story about {title.strip().rstrip('.')}.", f"Write a short story called \"{title.strip()}\".", f"A story, please: {title.strip()}"])), A(body.strip())], "tools": None}

    SHARES = [("call", 42), ("files", 18), ("needle", 7), ("copy", 8), ("json_answer", 7), ("edit_text", 4), ("from_system", 3), ("chat", 9), ("story", 2)]

    def one(self, kind=None):
        if kind is None: kind = self.g.r.choices([k for k, _ in self.SHARES], [w for _, w in self.SHARES])[0]
        return getattr(self, kind)()


def sources(folder):
    """Prompts and schemas of published agents, as agent_sources.py gathers them; nothing where it was not run."""
    return {k: json.loads(p.read_text()) for k in ("prompts", "schemas") for p in [Path(folder) / f"agent_{k}.json"] if p.exists()}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", required=True); a.add_argument("--held", action="store_true"); a.add_argument("--kind")
    a.add_argument("--seed", type=int, default=1); a.add_argument("--n", type=int, default=5)
    a = a.parse_args()
    d = Dialogues(Texts(a.data), a.seed, a.held, **sources(a.data))
    for _ in range(a.n):
        x = d.one(a.kind)
        print(f"======== {x['kind']}\n" + render(x["messages"], x["tools"]))


if __name__ == "__main__":
    main()
