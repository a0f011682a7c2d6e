"""One prompt of about 900 tokens, three ways: cold, warm without the prompt
cache (second launch, files in the page cache), and hot.

    scripts/demo.py [MODEL]      default: the model inside the program
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEARTH = os.path.join(ROOT, "build", "release", "hearth")
PROMPT = os.path.join(ROOT, "scripts", "demo_prompt.txt")
TOKENS = 48
REPEATS = 5


def run(arguments):
    start = time.monotonic()
    done = subprocess.run(
        [HEARTH, "sample", *arguments, "--prompt-file", PROMPT, "--tokens",
         str(TOKENS), "--temperature", "0", "--kv-quantize", "fp32", "--json",
         "--quiet"],
        stdout=subprocess.PIPE, check=True)
    report = json.loads(done.stdout)
    report["wall_ms"] = 1000 * (time.monotonic() - start)
    return report


def median_run(arguments):
    runs = sorted((run(arguments) for _ in range(REPEATS)),
                  key=lambda r: r["ttft_ms"])
    return runs[len(runs) // 2]


def human(n):
    return f"{n / 1e6:.1f} MB"


def main():
    model = sys.argv[1:2]
    store = tempfile.mkdtemp(prefix="hearth-demo-")
    try:
        cached = [*model, "--prompt-cache-dir", os.path.join(store, "cache")]
        arms = [("cold", run(cached)),
                ("warm, no prompt cache",
                 median_run([*model, "--no-prompt-cache"])),
                ("hot", median_run(cached))]
    finally:
        shutil.rmtree(store)
    texts = {report["text"] for _, report in arms}
    prompt_tokens = arms[0][1]["prompt_tokens"]
    print(f"prompt of {prompt_tokens} tokens, {TOKENS} generated; "
          f"medians of {REPEATS} launches but for cold\n")
    row = "{:<22} {:>10} {:>10} {:>9} {:>12} {:>12} {:>12}"
    print(row.format("", "wall", "TTFT", "reused", "KV logical",
                     "KV physical", "of it mapped"))
    for name, r in arms:
        print(row.format(
            name, f"{r['wall_ms']:.0f} ms", f"{r['ttft_ms']:.1f} ms",
            r["reused_tokens"], human(r["kv_logical_bytes"]),
            human(r["kv_physical_bytes"]), human(r["kv_mapped_bytes"])))
    warm, hot = arms[1][1], arms[2][1]
    step = 1000 / hot["decode_tokens_per_s"] if hot["decode_tokens_per_s"] else 0
    print(f"\nhot against warm: first token "
          f"{warm['ttft_ms'] / hot['ttft_ms']:.1f}x sooner")
    print(f"floor of the hot first token: start-up {hot['start_ms']:.1f} ms + "
          f"one decode step {step:.1f} ms = {hot['start_ms'] + step:.1f} ms; "
          f"measured {hot['ttft_ms']:.1f} ms (finding, verifying and mapping "
          f"the KV took {hot['lookup_ms']:.1f} ms of it)")
    print("texts identical: " + ("yes" if len(texts) == 1 else "NO"))
    print("\nthe text:" + arms[2][1]["text"].replace("\n", "\n  "))
    return 0 if len(texts) == 1 and hot["reused_tokens"] == prompt_tokens - 1 else 1


if __name__ == "__main__":
    sys.exit(main())
