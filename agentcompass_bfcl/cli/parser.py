"""All commands and their options."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path

from agentcompass_bfcl import __version__
from agentcompass_bfcl.cli.official_options import add_export_arguments, add_rescore_arguments

_EPILOG = """examples:
  agentcompass-bfcl demo
  agentcompass-bfcl run MODEL --base-url http://127.0.0.1:8000/v1 --draw golden --concurrency 8
  agentcompass-bfcl draw --draw golden --shard 0/4 --json
"""


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Show defaults, and the examples as they are written."""


def build_parser() -> argparse.ArgumentParser:
    """Build the whole parser; it imports no command."""
    parser = argparse.ArgumentParser(
        prog="agentcompass-bfcl",
        description="BFCL v4 single-turn function calling as an AgentCompass benchmark.",
        epilog=_EPILOG,
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _demo(commands)
    _run(commands)
    _draw(commands)
    _serve(commands)
    _report(commands)
    _watch(commands)
    _looking_into(commands)
    add_rescore_arguments(_command(commands, "rescore", "judge stored outputs again, of bfcl-eval or of a run"))
    _merge(commands)
    _compare(commands)
    _gate(commands)
    add_export_arguments(_command(commands, "export", "write a run in the form another tool reads"))
    _small_commands(commands)
    return parser


type _Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def _command(commands: _Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text, formatter_class=_Formatter)
    parser.set_defaults(command=_lazily(name.replace("-", "_")))
    return parser


def _lazily(module: str) -> Callable[[argparse.Namespace], int]:
    def command(namespace: argparse.Namespace) -> int:
        return int(importlib.import_module(f"agentcompass_bfcl.cli.{module}").run_command(namespace))

    return command


def _demo(commands: _Commands) -> None:
    parser = _command(commands, "demo", "run a draw against a local endpoint that makes some mistakes")
    parser.add_argument("--draw", default="mini", help="golden, echolp, mini or full")
    parser.add_argument("--mistakes", default="wrong_value=4,missing_call=2,extra_call=2,http_500=1", help=_MISTAKES)
    parser.add_argument("--seed", type=int, default=0, help="which rows the mistakes fall on")
    parser.add_argument("--concurrency", type=int, default=8, help="requests at a time")
    parser.add_argument("--results-dir", type=Path, default=Path("results"), help="where run directories go")
    _json_option(parser)


_MISTAKES = "percent of rows by kind of mistake: kind=percent,..., or one number for every kind"


def _run(commands: _Commands) -> None:
    parser = _command(commands, "run", "run a draw against an endpoint and score it")
    parser.add_argument("model", help="model name to send")
    parser.add_argument(
        "--base-url",
        action="append",
        help="endpoint, ending in /v1; without it OPENAI_BASE_URL, or the OpenAI library's default; several are spread"
        " over the shards",
    )
    parser.add_argument("--api-key-env", default="OPENAI_API_KEY", help="environment variable that holds the key")
    _draw_options(parser)
    parser.add_argument("--mode", help="how functions are offered: fc (as tools) or prompt (in the system prompt)")
    parser.add_argument(
        "--strip-think", action="store_true", default=None, help="prompt mode: cut off a leading <think>...</think>"
    )
    parser.add_argument("--on-error", help="samples without a verdict: fail (count as wrong) or exclude")
    parser.add_argument("--tool-choice", help="tool_choice to send: auto, required, none; not sent unless given")
    parser.add_argument("--concurrency", type=int, default=8, help="requests at a time, of all shards together")
    parser.add_argument("--attempts", type=int, default=1, help="attempts per sample (k)")
    parser.add_argument(
        "--harness", choices=("bfcl_chat", "openai_chat"), default="bfcl_chat", help="who sends requests"
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times; says what changes by itself")
    workers = parser.add_argument_group("shards at the same time, merged at the end")
    workers.add_argument(
        "--shards", type=int, metavar="N", help="into how many to split the run; without it one for every 500 rows"
    )
    workers.add_argument("--executor", choices=("process", "ray"), default="process", help="who runs them")
    workers.add_argument(
        "--ray-address", metavar="ADDRESS", help="of a Ray cluster; without it RAY_ADDRESS, then this machine"
    )
    sampling = parser.add_argument_group("what is sent with each request; nothing unless given")
    sampling.add_argument("--temperature", type=float)
    sampling.add_argument("--top-p", type=float)
    sampling.add_argument("--max-tokens", type=int)
    sampling.add_argument("--seed", type=int)
    sampling.add_argument("--model-params", metavar="JSON", help="further parameters, extra_body among them")
    limits = parser.add_argument_group("limits of one request (bfcl_chat)")
    limits.add_argument("--timeout", type=float, metavar="SECONDS", help="one request, reply included")
    limits.add_argument("--retries", type=int, help="for faults that may pass")
    limits.add_argument("--retry-seconds", type=float, metavar="SECONDS", help="no retry begins after these")
    output = parser.add_argument_group("output")
    output.add_argument("--results-dir", type=Path, default=Path("results"), help="where run directories go")
    output.add_argument("--run-name", default="", help="folder below it that groups runs")
    output.add_argument("--reuse", action="store_true", help="go on with this run where it was interrupted")
    output.add_argument(
        "--progress",
        choices=("auto", "plain", "none"),
        default="auto",
        help="the host's display; of shards a line with the score so far, and early warnings",
    )
    output.add_argument("--analysis", action="store_true", help="let the host analyse each attempt; a quarter slower")
    output.add_argument(
        "--events",
        action="store_true",
        help="let the host write each event to progress.jsonl and progress.json; slower",
    )
    _json_option(output)


def _draw(commands: _Commands) -> None:
    parser = _command(commands, "draw", "show which rows a draw, or a shard of it, consists of")
    _draw_options(parser)
    _json_option(parser)


def _serve(commands: _Commands) -> None:
    parser = _command(commands, "serve", "answer BFCL requests from the reference answers, on loopback")
    parser.add_argument("--mistakes", default="0", help=_MISTAKES)
    parser.add_argument("--seed", type=int, default=0, help="which rows the mistakes fall on")
    parser.add_argument("--host", default="127.0.0.1", help="loopback address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="0: any free port")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="wait before each answer")
    parser.add_argument("--stall-seconds", type=float, default=600.0, help="how long a stalled request is kept open")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)


_WHEEL = "the pinned bfcl-eval wheel, or a folder with it; otherwise BFCL_WHEEL, then the cache, then pip"


def _looking_into(commands: _Commands) -> None:
    parser = _command(commands, "failures", "list a run's misses and errors, and count their kinds")
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="run directory")
    parser.add_argument("--subset", action="append", help="only this subset; may be repeated")
    parser.add_argument("--type", action="append", help="only this error type or code; may be repeated")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)
    _json_option(parser)
    parser = _command(commands, "show", "show one sample of a run, from question to verdict")
    parser.add_argument("run_dir", metavar="RUN", type=Path, help="run directory")
    parser.add_argument("sample_id", metavar="ID", help="such as simple_python_0")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)
    _json_option(parser)


def _merge(commands: _Commands) -> None:
    parser = _command(commands, "merge", "put the shards of a run together: every row of the draw exactly once")
    parser.add_argument(
        "runs",
        metavar="RUN",
        type=Path,
        nargs="+",
        help="run directory or JSON result of a shard, or a folder with such directories below it",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="new run directory to make of run directories")
    parser.add_argument("--allow-errors", action="store_true", help="merge shards that hold failed requests")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)
    _json_option(parser)


def _compare(commands: _Commands) -> None:
    parser = _command(commands, "compare", "say what changed between runs of the same rows, and how sure that is")
    parser.add_argument("first", metavar="RUN", type=Path, help="run directory or JSON result to compare with")
    parser.add_argument(
        "others", metavar="RUN", type=Path, nargs="+", help="those to compare; of several there is a table"
    )
    parser.add_argument(
        "--same-build",
        metavar="RUN",
        type=Path,
        action="append",
        default=[],
        help="a further run of the first one's build: says what changes with nothing changed; may be repeated",
    )
    parser.add_argument(
        "--allow",
        metavar="KEY",
        action="append",
        default=[],
        help="let this fact differ, such as request; may be repeated",
    )
    parser.add_argument("--all", action="store_true", help="of two runs list every row that flipped")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="tables for a pull request")
    _json_option(form)


def _gate(commands: _Commands) -> None:
    text = "decide in CI: exit code 0 passed, 1 error, 2 usage, 3 failed, 4 cannot be judged"
    parser = _command(commands, "gate", text)
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run directories or JSON results")
    parser.add_argument("--baseline-file", type=Path, metavar="FILE", help="TOML with [[baseline]] tables")
    parser.add_argument(
        "--baseline", metavar="NAME", help="only this one of the file; without a file a built-in: mlperf-edge-agentic"
    )
    parser.add_argument(
        "--not-worse-than",
        type=Path,
        metavar="RUN",
        help="fail when overall is shown to be worse than this run's (row by row, one-sided, 95 %%): when difference"
        " + 1.645 paired standard errors < 0",
    )
    parser.add_argument(
        "--margin",
        type=_decimal,
        metavar="POINTS",
        help="turn the burden of proof round: pass only when shown to be at most so much worse, that is when difference"
        " - 1.645 paired standard errors >= -POINTS; without it the run that nothing is shown of passes",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the checks as JUnit XML")
    parser.add_argument(
        "--summary",
        metavar="FILE",
        help="append a Markdown table; auto: to the file GITHUB_STEP_SUMMARY names, if it names one",
    )
    writing = parser.add_argument_group("make a baseline of a run instead")
    writing.add_argument("--write-baseline", type=Path, metavar="FILE", help="TOML; noise from the standard errors")
    writing.add_argument("--name", help="the baseline's name")
    writing.add_argument("--for-model", action="store_true", help="for this model only")
    writing.add_argument("--force", action="store_true", help="write over an existing file")
    _json_option(parser)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def _report(commands: _Commands) -> None:
    parser = _command(commands, "report", "write one HTML file that shows a run, or several over each other")
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run directories or JSON results")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="file; - is standard output")
    parser.add_argument("--format", choices=("html", "md", "text"), default="html", help="what to write")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)


def _watch(commands: _Commands) -> None:
    parser = _command(commands, "watch", "show provisional counts of a run that is going on, or of its shards")
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run directories, or a folder above them")
    parser.add_argument("--seconds", type=float, default=5.0, help="between two looks")
    parser.add_argument("--once", action="store_true", help="look once and return")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)


def _small_commands(commands: _Commands) -> None:
    parser = _command(commands, "provision", "find or fetch the pinned official wheel and check every file")
    parser.add_argument("--wheel", type=Path, help=_WHEEL)
    parser.add_argument("--force", action="store_true", help="fetch again, over a damaged file in the cache")
    _json_option(parser)
    parser = _command(commands, "schema", "print the JSON Schema of what the commands write for machines")
    parser.add_argument("document", choices=("result", "comparison", "decision"), help="of run, compare or gate --json")
    _command(commands, "doctor", "check this installation, and say what to mend")
    _command(commands, "recipe-dir", "print the folder for `agentcompass run --recipe-dir`")
    commands.add_parser("agentcompass", help="the host's own command line, with bfcl registered", add_help=False)


def _draw_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which rows")
    group.add_argument("--draw", default="golden", help="golden, echolp, mini, full, or all (every single-turn subset)")
    group.add_argument("--categories", help="only these: non_live, live, hallucination (commas between)")
    group.add_argument(
        "--category-pct", action="append", metavar="CATEGORY=PERCENT", help="percent of each subset; may be repeated"
    )
    group.add_argument(
        "--subset-floor", type=int, metavar="ROWS", help="subsets of at most so many rows are taken whole"
    )
    group.add_argument("--subsets", help="only these subsets (commas between)")
    group.add_argument("--limit", type=int, metavar="ROWS", help="at most so many rows, spread over the subsets")
    group.add_argument(
        "--shard", metavar="INDEX/COUNT", help="which part of the draw, 0-based; auto: as a cluster says"
    )
    group.add_argument("--wheel", type=Path, help=_WHEEL)


def _json_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
