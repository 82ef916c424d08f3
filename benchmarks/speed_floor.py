"""The two floors of the speed suite: AgentCompass with a benchmark that does nothing, and requests with no host.

``python -m benchmarks.speed_floor host --rows 995 --concurrency 8 --results-dir DIR`` runs as many tasks as a draw has
rows, through a harness that answers at once (or after ``--latency`` seconds). ``... bare --base-url URL --rows 995
--concurrency 8 --client openai`` sends a draw's requests from one asyncio loop and stores nothing. Both print
the time from the first request to the last reply.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

DRAWS = {192: "mini", 995: "golden", 1004: "echolp", 3625: "full"}


def draw_params(rows: int) -> dict[str, Any]:
    """Name the draw of so many rows: one that has a name, else the first rows of ``full``."""
    return {"draw": DRAWS[rows]} if rows in DRAWS else {"draw": "full", "limit": rows}


def draw_options(rows: int) -> list[str]:
    """Write the same as options of ``run``."""
    return [word for key, value in draw_params(rows).items() for word in (f"--{key}", str(value))]


def run_host_floor(rows: int, concurrency: int, results: Path, latency: float) -> float:
    """Run tasks that do nothing in AgentCompass; return the seconds from the first answer's begin to the last's end."""
    from agentcompass_bfcl.host import register

    register()
    from agentcompass.launcher import async_run_evaluation

    from agentcompass_bfcl.host_progress import lean_reporter
    from benchmarks.speed_nothing import span

    asyncio.run(
        async_run_evaluation(
            benchmark="bfcl_floor",
            harness="bfcl_floor",
            model="none",
            benchmark_params={"rows": rows},
            harness_params={"latency": latency},
            task_concurrency=concurrency,
            results_dir=str(results),
            enable_analysis=False,
            progress="none",
            on_progress=lean_reporter("floor", "bfcl_floor", "none", lambda: results),  # as in a run of ours
            log_level="WARNING",
            file_log_level="INFO",
        )
    )
    return span()


def requests_of(rows: int) -> list[dict[str, Any]]:
    """Write the chat completions requests of a draw, as keyword arguments."""
    from agentcompass_bfcl.draw import select
    from agentcompass_bfcl.settings import parse_settings
    from agentcompass_bfcl.sources import load_sources
    from agentcompass_bfcl.task import chat_request

    sources = load_sources()
    entries = select(parse_settings(draw_params(rows)).spec, sources.dataset)
    written = []
    for entry in entries:
        request = chat_request(entry, sources.official)
        body: dict[str, Any] = {"model": "none", "messages": request.messages}
        written.append(body | ({"tools": request.tools} if request.tools else {}))
    return written


async def run_bare(base_url: str, bodies: Sequence[Mapping[str, Any]], concurrency: int, client: str) -> float:
    """Send requests, so many at a time; return the seconds it took. ``client`` is ``openai`` or ``httpx``."""
    import httpx
    import openai

    waiting = iter(bodies)
    async with httpx.AsyncClient(timeout=60) as plain, openai.AsyncOpenAI(base_url=base_url, api_key="none") as library:

        async def by_httpx(body: Mapping[str, Any]) -> None:
            reply = await plain.post(f"{base_url}/chat/completions", json=body)
            reply.raise_for_status()
            reply.json()

        async def by_openai(body: Mapping[str, Any]) -> None:
            await library.chat.completions.create(**body)

        begun = time.perf_counter()
        send: Callable[[Mapping[str, Any]], Awaitable[None]] = by_httpx if client == "httpx" else by_openai

        async def worker() -> None:
            for body in waiting:
                await send(body)

        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return time.perf_counter() - begun


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one floor in this process and print its time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True, dest="kind")
    host, bare = kinds.add_parser("host"), kinds.add_parser("bare")
    for kind in (host, bare):
        kind.add_argument("--rows", type=int, required=True)
        kind.add_argument("--concurrency", type=int, default=8)
        kind.add_argument("--out", type=Path, help="write the seconds to this file as well")
    host.add_argument("--results-dir", type=Path, required=True)
    host.add_argument("--latency", type=float, default=0.0)
    bare.add_argument("--base-url", required=True)
    bare.add_argument("--client", choices=("openai", "httpx"), default="openai")
    given = parser.parse_args(arguments)
    if given.kind == "host":
        seconds = run_host_floor(given.rows, given.concurrency, given.results_dir, given.latency)
    else:
        bodies = requests_of(given.rows)
        seconds = asyncio.run(run_bare(given.base_url, bodies, given.concurrency, given.client))
    if given.out:
        given.out.write_text(f"{seconds}\n")
    print(f"{seconds:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
