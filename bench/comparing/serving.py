"""One server under load, hearth's or the peer's, through the same HTTP requests:
POST /completion with prompts of token ids, which both understand."""

import http.client
import json
import random
import statistics
import threading
import time

# Ids of ordinary words in every vocabulary that is measured.
LOW, HIGH = 1000, 30000


def ids(n, seed):
    generator = random.Random(seed)
    return [generator.randrange(LOW, HIGH) for _ in range(n)]


class Answer:
    """One request that streams; times in seconds since its start."""

    def __init__(self, port, prompt, n_tokens):
        self.times, self.timings, self.error = [], {}, None
        self.port, self.prompt, self.n_tokens = port, prompt, n_tokens
        self.start = time.monotonic()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=1800)
        body = {"prompt": self.prompt, "n_predict": self.n_tokens,
                "temperature": 0, "ignore_eos": True, "cache_prompt": True,
                "stream": True}
        try:
            connection.request("POST", "/completion", json.dumps(body),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if reply.status != 200:
                raise OSError(f"status {reply.status}: {reply.read(300)}")
            for line in reply:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                if event.get("stop"):
                    self.timings = event.get("timings", {})
                else:
                    self.times.append(time.monotonic() - self.start)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.error = error
        finally:
            connection.close()

    def wait(self):
        self.thread.join()
        if self.error is not None:
            raise self.error
        return self

    @property
    def ttft(self):
        return self.times[0]

    def gap(self, begin, end):
        """The longest silence between two absolute times."""
        marks = [self.start + t for t in self.times]
        marks = [begin] + [m for m in marks if begin < m < end] + [end]
        return max(b - a for a, b in zip(marks, marks[1:]))


def together(port, n, depth, n_tokens, seed):
    """Tokens a second of `n` answers behind `depth` tokens each, while all run."""
    prompts = [ids(depth, seed + i) for i in range(n)]
    for prompt in prompts:  # what is measured is decoding
        Answer(port, prompt, 1).wait()
    answers = [Answer(port, prompt + ids(1, 7), n_tokens) for prompt in prompts]
    for answer in answers:
        answer.wait()
    begin = max(a.start + a.times[0] for a in answers)
    end = min(a.start + a.times[-1] for a in answers)
    done = sum(sum(begin < a.start + t <= end for t in a.times) for a in answers)
    return done / (end - begin)


def health_p99(port, stop):
    times = []
    while not stop.is_set():
        start = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.close()
        times.append(time.monotonic() - start)
        time.sleep(0.05)
    return statistics.quantiles(times, n=100)[98] if len(times) > 1 else 0.0


def during_a_prefill(port, warm_depth, cold, seed):
    """A warm turn, and a running answer, while somebody's cold prompt is read."""
    base = ids(warm_depth, seed)
    Answer(port, base, 1).wait()
    running = Answer(port, ids(256, seed + 1), 4000)
    while len(running.times) < 8 and running.thread.is_alive():
        time.sleep(0.02)
    stop, health = threading.Event(), []
    watcher = threading.Thread(
        target=lambda: health.append(health_p99(port, stop)))
    watcher.start()
    begin = time.monotonic()
    reading = Answer(port, ids(cold, seed + 2), 1)
    time.sleep(1)
    turn = Answer(port, base + ids(64, seed + 3), 2).wait()
    reading.wait()
    end = time.monotonic()
    stop.set()
    watcher.join()
    return {"turn_ttft_ms": 1e3 * turn.ttft, "gap_ms": 1e3 * running.gap(begin, end),
            "cold_beside_s": reading.ttft, "health_ms": 1e3 * health[0]}


def figures(port, small):
    """All of it, on a server that has just started. `small`: a quarter of the
    depths, where the machine has no time for more."""
    scale = 4 if small else 1
    out = {}
    for n in (1, 2, 4, 8):
        out[f"decode_{n}"] = together(port, n, 512 // scale, 48, 100 * n)
    cold = Answer(port, ids(2048 // scale, 5), 1).wait()
    out["cold_ms"] = 1e3 * cold.ttft
    out |= during_a_prefill(port, 16000 // scale, 8192 // scale, 900)
    again = Answer(port, ids(16000 // scale, 900) + ids(16, 6), 1).wait()
    out["again_ms"] = 1e3 * again.ttft
    return out


def alternating(port, small):
    """Tokens computed in the second and third turns of eight conversations that
    take turns, beyond the new ones."""
    depth, twice = (8000 // 4 if small else 8000), 0
    talks = [ids(depth, 2000 + i) for i in range(8)]
    for turn in range(3):
        for i, talk in enumerate(talks):
            answer = Answer(port, talk, 1).wait()
            new = 33 if turn > 0 else depth
            computed = answer.timings.get("prompt_n", 0)
            if turn > 0:
                twice += max(0, computed - new)
            talks[i] = talk + ids(32, 3000 + 10 * turn + i)
    return twice
