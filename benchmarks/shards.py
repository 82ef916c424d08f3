"""Run a draw whole and in shards against a local endpoint: is the merged result the same, and how long does it take?

From the project's folder: ``python -m benchmarks.shards [--draw golden] [--counts 1,2,3,7,16]``. The endpoint runs in a
process of its own and answers at once, with mistakes that fall on the same rows every time. Each run is compared with
the first: their canonical JSON has to be the same to the byte but for where the shards ran. Times are of whole
commands, imports and merging included, as ratios to the first. Exits with 1 when a result differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

COMMAND = [sys.executable, "-m", "agentcompass_bfcl"]
MISTAKES = "wrong_value=5,missing_call=3,extra_call=3,http_500=1"


def main() -> int:
    """Run, compare, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", default="golden")
    parser.add_argument("--counts", default="1,2,3,7,16", help="numbers of shards; the first is compared with")
    parser.add_argument("--executor", action="append", choices=("process", "ray"), help="each, in turn; process")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--mistakes", default=MISTAKES)
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.counts.split(",")]
    rows: list[tuple[str, int, float, float, str]] = []
    first, different = "", 0
    with tempfile.TemporaryDirectory(prefix="bfcl-shards-") as scratch:
        serve = [*COMMAND, "serve", "--port", "0", "--mistakes", arguments.mistakes]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as endpoint:
            try:
                base_url = _base_url(endpoint)
                for executor in arguments.executor or ["process"]:
                    for count in counts:
                        options = ["--draw", arguments.draw, "--shards", str(count), "--executor", executor]
                        options += ["--concurrency", str(arguments.concurrency)]
                        results = Path(scratch) / f"{executor}{count}"
                        seconds, result = _timed(base_url, results, options)
                        first = first or result
                        different += result != first
                        base = rows[0][2] if rows else seconds
                        said = "first" if not rows else "the same" if result == first else "DIFFERENT"
                        rows.append((executor, count, seconds, base / seconds, said))
                        print(f"{executor} {count}: {seconds:.0f} s, {said}", file=sys.stderr, flush=True)
            finally:
                endpoint.terminate()
    headers = ["executor", "shards", "seconds", "times as fast", "canonical result"]
    print(tabulate(rows, headers=headers, floatfmt=("", "", ".0f", ".2f", "")))
    return 1 if different else 0


def _base_url(endpoint: subprocess.Popen[str]) -> str:
    if endpoint.stdout is None:
        raise RuntimeError("the endpoint has no standard output")
    line = endpoint.stdout.readline()
    return next(word.rstrip(";") for word in line.split() if word.startswith("http"))


def _timed(base_url: str, results: Path, options: Sequence[str]) -> tuple[float, str]:
    limits = ["--retries", "0", "--progress", "none", "--results-dir", str(results), "--json"]
    begun = time.perf_counter()
    run = subprocess.run(
        [*COMMAND, "run", "some-model", "--base-url", base_url, *options, *limits],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    if not run.stdout:
        raise SystemExit(f"{' '.join(options)}: {run.stderr[-2000:]}")
    document = json.loads(run.stdout)
    document["extra"].pop("shards", None)
    return seconds, json.dumps(document, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main())
