"""Runs one process of either side and tells how disturbed it was."""

import http.client
import json
import mmap
import os
import random
import resource
import shutil
import subprocess
import tempfile
import threading
import time

from . import serving

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HZ = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count()


def busy():
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (sum(v) - v[3] - v[4]) / HZ  # all but idle and waiting for a disk


def wait_quiet(seconds, share=0.10):
    """Until others use less than `share` of the machine, or `seconds` are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = busy()
        time.sleep(0.4)
        if (busy() - before) / 0.4 / CORES < share:
            return True
    return False


def read_through(path):
    """Brings a file from the disk into the page cache, in large pages: the state
    in which hearth's first launch after a boot leaves it, for both sides. (A file
    just written lies there in small pages, and every step is slower.)"""
    with open(path, "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
            m.madvise(mmap.MADV_HUGEPAGE)
            for at in range(0, len(m), 1 << 16):
                m[at]


class Failed(Exception):
    pass


def run(command, env=None):
    """-> JSON of the last line, ms to the first line, others' share of the CPUs."""
    full = dict(os.environ, **(env or {}))
    cpu0 = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy0, start = busy(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=full)
    first = process.stdout.readline()
    first_ms = 1e3 * (time.monotonic() - start)
    rest, err = process.communicate()
    wall = time.monotonic() - start
    cpu1 = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = cpu1.ru_utime + cpu1.ru_stime - cpu0.ru_utime - cpu0.ru_stime
    others = max(0.0, busy() - busy0 - own) / wall / CORES
    if process.returncode != 0:
        raise Failed(" ".join(command) + ": " + err.decode()[-300:].strip())
    lines = (first + rest).decode().strip().splitlines()
    return json.loads(lines[-1]), first_ms, others


class Hearth:
    name = "hearth"

    def does(self, job):
        return True

    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def run(self, job, model):
        """{KV format: figures}, and the largest share that others had."""
        if job.kind == "serve":
            return self.run_serve(job, model)
        found, most = {}, 0.0
        for kv in job.kvs:
            found[kv], others = self.run_kv(job, model, kv)
            most = max(most, others)
        return found, most

    def run_kv(self, job, model, kv):
        common = [model, "--json", "-r", "1", "--kv", kv, "--threads",
                  str(self.threads)]
        if job.kind != "speed":
            out, _, others = run([self.program, "bench", "warm-start", *common,
                                  "--lengths", str(job.depth)])
            length = out["lengths"][0]
            arms = {arm: length[arm]["first_token_ms"]["median"]
                    for arm in ("cold", "warm", "hot")}
            return arms | {"detail": length}, others
        out, _, others = run(
            [self.program, "bench", *common, "--prefill",
             str(job.more if job.depth else job.prefill), "--decode",
             str(job.decode), "--depth", str(job.depth)])
        return out, others


    def run_serve(self, job, model):
        folder = tempfile.mkdtemp(prefix="hearth-serve-")
        command = [self.program, "serve", model, "--port", "0", "--quiet",
                   "--no-log", "--threads", str(self.threads), "--context",
                   "32768", "--parallel", "8", "--prompt-cache-dir", folder]

        def launch():
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if "listening on http://127.0.0.1:" in line:
                    port = int(line.rsplit(":", 1)[1])
                    threading.Thread(target=process.stderr.read,
                                     daemon=True).start()
                    return process, port
            raise Failed("hearth serve ended at once")

        try:
            found, others = serve_figures(launch, job)
        finally:
            shutil.rmtree(folder)
        return {kv: found for kv in job.kvs}, others


def serve_figures(launch, job):
    """What a server does under load, and then after a restart. `launch` gives
    a process and its port."""
    before, busy0 = time.monotonic(), busy()
    cpu0 = resource.getrusage(resource.RUSAGE_CHILDREN)
    process, port = launch()
    try:
        found = serving.figures(port, job.small)
        found["computed_twice"] = serving.alternating(port, job.small)
    except OSError as error:
        raise Failed(str(error)) from error
    finally:
        process.terminate()
        process.wait()
    start = time.monotonic()
    process, port = launch()
    depth = 16000 // (4 if job.small else 1)
    found["ready_ms"] = 1e3 * (time.monotonic() - start)
    serving.Answer(port, serving.ids(depth, 900) + serving.ids(16, 8), 1).wait()
    found["restart_ms"] = 1e3 * (time.monotonic() - start)
    process.terminate()
    process.wait()
    cpu1 = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = cpu1.ru_utime + cpu1.ru_stime - cpu0.ru_utime - cpu0.ru_stime
    wall = time.monotonic() - before
    return found, max(0.0, busy() - busy0 - own) / wall / CORES


class Peer:
    """One build of the peer, through peer_driver.cc."""

    def __init__(self, name, tools, threads):
        self.name, self.tools, self.threads = name, tools, threads
        self.driver = os.path.join(tempfile.gettempdir(), "hearth-peer-driver")
        source = os.path.join(HERE, "peer_driver.cc")
        if (not os.path.exists(self.driver)
                or os.path.getmtime(self.driver) < os.path.getmtime(source)):
            subprocess.check_call(["g++", "-O2", "-o", self.driver, source, "-ldl"])
        if name == "npm":
            node = os.environ.get("NODE_PEER", "/opt/peers/node")
            lib = node + "/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"
            self.start, self.env = [self.driver, lib], {"LD_LIBRARY_PATH": lib}
        else:
            lib = "/usr/lib/x86_64-linux-gnu"
            self.start = [os.path.join(tools, "peer"), self.driver, lib]
            self.env = {"PEER_BACKENDS": lib + "/ggml/backends0"}

    def does(self, job):
        return job.kind not in ("server", "serve")

    def run(self, job, model):
        command = self.start + [model, "-t", str(self.threads), "-ctk",
                                job.peer_kv]
        if job.kind == "start":
            return self.run_start(job, command)
        out, _, others = run(
            command + ["-p", str(job.prefill), "-n", str(job.decode), "-d",
                       str(job.depth), "-pd", str(job.more)], self.env)
        return out, others

    def run_start(self, job, command):
        folder = tempfile.mkdtemp(prefix="hearth-peer-")
        state = os.path.join(folder, "state")
        command = command + ["-start", "-d", str(job.depth)]
        try:
            _, cold, others = run(command + ["-save", state], self.env)
            out, hot, _ = run(command + ["-load", state], self.env)
        finally:
            shutil.rmtree(folder)
        return {"cold": cold, "hot": hot, "detail": out}, others


class PeerServer:
    """The peer's server with a slot file: the way its users keep a prompt."""

    name = "server"
    PORT = 18080

    def __init__(self, tools, threads):
        self.tools, self.threads = tools, threads

    def does(self, job):
        return job.kind in ("server", "serve")

    def call(self, how, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.PORT,
                                                timeout=1800)
        connection.request(how, path, json.dumps(body) if body else None,
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        connection.close()
        return reply.status

    def launch(self, job, model, folder, slots=1, context=0):
        process = subprocess.Popen(
            [os.path.join(self.tools, "peer"), "llama-server", "-m", model, "-t",
             str(self.threads), "-c", str(context or job.depth + 256), "-np",
             str(slots), "-fa", "on", "-ctk", job.peer_kv, "-ctv", job.peer_kv,
             "--host", "127.0.0.1", "--port", str(self.PORT), "--slot-save-path",
             folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            try:
                if self.call("GET", "/health") == 200:
                    return process
            except OSError:
                pass
            time.sleep(0.005)
        raise Failed("llama-server ended at once")

    def one_token(self, prompt):
        status = self.call("POST", "/completion", {
            "prompt": prompt, "n_predict": 1, "temperature": 0,
            "cache_prompt": True, "id_slot": 0, "ignore_eos": True})
        if status != 200:
            raise Failed(f"llama-server answered {status}")

    def run_serve(self, job, model):
        folder = tempfile.mkdtemp(prefix="hearth-peer-")
        try:
            # Its context is shared out among the slots.
            return serve_figures(
                lambda: (self.launch(job, model, folder, slots=8,
                                     context=8 * (32768 if not job.small
                                                  else 8192)), self.PORT), job)
        finally:
            shutil.rmtree(folder)

    def run(self, job, model):
        if job.kind == "serve":
            return self.run_serve(job, model)
        generator = random.Random(job.depth)
        prompt = [generator.randrange(1000, 30000) for _ in range(job.depth)]
        folder = tempfile.mkdtemp(prefix="hearth-peer-")
        figures, before, busy0 = {}, time.monotonic(), busy()
        cpu0 = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            for arm in ("cold", "hot"):
                start = time.monotonic()
                process = self.launch(job, model, folder)
                ready = time.monotonic() - start
                if arm == "hot":
                    self.call("POST", "/slots/0?action=restore",
                              {"filename": "slot"})
                self.one_token(prompt)
                figures[arm] = 1e3 * (time.monotonic() - start)
                figures[arm + "_ready"] = 1e3 * ready
                if arm == "cold":
                    self.call("POST", "/slots/0?action=save",
                              {"filename": "slot"})
                process.terminate()
                process.wait()
        finally:
            shutil.rmtree(folder)
        cpu1 = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = cpu1.ru_utime + cpu1.ru_stime - cpu0.ru_utime - cpu0.ru_stime
        wall = time.monotonic() - before
        return figures, max(0.0, busy() - busy0 - own) / wall / CORES
