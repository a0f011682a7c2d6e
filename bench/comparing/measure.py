"""Runs one process of either side and tells how disturbed it was."""

import json
import os
import resource
import shutil
import subprocess
import tempfile
import time

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

    def __init__(self, program, threads):
        self.program, self.threads = program, threads

    def run(self, job, model):
        """{KV format: figures}, and the largest share that others had."""
        found, most = {}, 0.0
        for kv in job.kvs:
            found[kv], others = self.run_kv(job, model, kv)
            most = max(most, others)
        return found, most

    def run_kv(self, job, model, kv):
        common = [model, "--json", "-r", "1", "--kv", kv, "--threads",
                  str(self.threads)]
        if job.kind == "start":
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
