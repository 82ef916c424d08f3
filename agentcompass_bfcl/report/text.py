"""A result as text for a terminal: subsets, categories, both scores, counts and identity."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from tabulate import tabulate

from agentcompass_bfcl.errors import one_line
from agentcompass_bfcl.report.numbers import UNDEFINED, error_bars, number
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.statistics import Estimate
from agentcompass_bfcl.subsets import CATEGORIES, category_of

_LINE = 100


def render_text(result: ResultDocument, run_dir: Path | None = None) -> str:
    """Write the tables, ending in a newline. The same result gives the same text."""
    blocks = [_subset_table(result), _score_table(result), _facts(result, run_dir)]
    return "\n\n".join(blocks) + "\n"


def _subset_table(result: ResultDocument) -> str:
    rows = [
        [
            one_line(name),
            one_line(subset.category or UNDEFINED),
            subset.hits,
            subset.n,
            subset.errors,
            number(subset.accuracy),
        ]
        for name, subset in result.details.subsets.items()
    ]
    headers = ["subset", "category", "hits", "n", "errors", "accuracy %"]
    return tabulate(
        rows, headers=headers, tablefmt="simple", colalign=("left", "left", *["right"] * 4), disable_numparse=True
    )


def _score_table(result: ResultDocument) -> str:
    metrics, statistics = result.metrics, result.details.statistics
    bars: dict[str, Estimate | None] = {}
    if statistics is not None:
        bars = {**statistics.categories, "normalized": statistics.normalized, "overall": statistics.overall}
    categories = result.details.categories
    rows: list[tuple[str, str, float | None]] = [
        (name, name, categories[name]) for name in CATEGORIES if name in categories
    ]
    rows += [
        ("normalized", "normalized (mean of the categories)", metrics.get("normalized_single_turn_score")),
        ("overall", "overall (every sample alike)", metrics.get("overall_accuracy")),
    ]
    headers, width = ["score", "%"], 2
    if statistics is not None:
        headers, width = [*headers, "std. error", "95 % interval", "clustered"], 5
    few = _few(result)
    cells = [[label, number(score), *_bars(bars.get(name), mark=name in few)][:width] for name, label, score in rows]
    alignment = ("left", *["right"] * (width - 1))
    return tabulate(cells, headers=headers, tablefmt="simple", colalign=alignment, disable_numparse=True)


def _few(result: ResultDocument) -> set[str]:
    """Name the scores that a subset of fewer than ten clusters goes into."""
    statistics = result.details.statistics
    if statistics is None or not statistics.few_clusters:
        return set()
    return {"overall", "normalized", *(str(category_of(name)) for name in statistics.few_clusters)}


def _bars(estimate: Estimate | None, *, mark: bool) -> list[str]:
    error, ends, clustered = error_bars(estimate)
    return [error, ends, f"{clustered}*" if mark and clustered != UNDEFINED else clustered]


def _facts(result: ResultDocument, run_dir: Path | None) -> str:
    counts, extra = result.counts, result.extra
    facts = {
        "samples": f"{counts.total} total, {counts.evaluated} evaluated, {counts.error} error",
        "misses": _misses_text(result),
        "errors": _errors_text(result),
        "truncated": f"{result.details.truncated} replies cut off at the token limit"
        if result.details.truncated
        else "",
        "strictly": _strict_text(result),
        "absent": one_line(", ".join(result.details.absent)),
        "clusters": _clusters_text(result),
        "attempts": _attempts_text(result),
        "draw": one_line(_draw_text(extra)),
        "fingerprint": one_line(str(extra.get("fingerprint", ""))),
        "model": one_line(_model_text(extra)),
        "shards": _shards_text(extra),
        "run": "" if run_dir is None else one_line(str(run_dir)),
    }
    shown = {name: text for name, text in facts.items() if text}
    width = max(map(len, shown))
    below = "\n" + " " * (width + 2)
    return "\n".join(f"{name:<{width}}  {text.replace('\n', below)}" for name, text in shown.items())


def _shards_text(extra: Mapping[str, object]) -> str:
    shards = extra.get("shards")
    return f"merged from {len(shards)}" if isinstance(shards, list) else ""


def _strict_text(result: ResultDocument) -> str:
    count = result.details.malformed_abstentions
    held = "1 right abstention holds a call" if count == 1 else f"{count} right abstentions hold calls"
    return f"{held} that cannot be decoded; the official rule credits that" if count else ""


def _clusters_text(result: ResultDocument) -> str:
    few = {} if result.details.statistics is None else result.details.statistics.few_clusters
    if not few:
        return ""
    listed = one_line(", ".join(f"{name} {count}" for name, count in few.items()))
    said = f"* fewer than ten groups of rows with the same functions, so mostly too small: {listed}"
    return textwrap.fill(said, _LINE)


def _attempts_text(result: ResultDocument) -> str:
    spread = None if result.details.statistics is None else result.details.statistics.attempts
    if spread is None:
        return ""
    average = "" if spread.avg_at_k is None else f"avg@{spread.k} {number(spread.avg_at_k)}, "
    apart = (
        ""
        if spread.standard_deviation is None
        else f"; between attempts std. deviation {spread.standard_deviation:.2f}"
    )
    return (
        f"{average}pass@{spread.k} {number(spread.pass_at_k)}; {spread.rows_that_vary} rows came out both ways{apart}"
    )


def _model_text(extra: Mapping[str, object]) -> str:
    model, source = extra.get("model", ""), extra.get("source")
    if "base_url" not in extra and source is not None:
        return f"{model} ({source})"
    base_url = extra.get("base_url") or "the default endpoint"
    place = f"{model} at {', '.join(map(str, base_url)) if isinstance(base_url, list) else base_url}"
    return place if source is None else f"{place} ({source})"


def _draw_text(extra: Mapping[str, object]) -> str:
    shard, scope = extra.get("shard"), extra.get("scope")
    part = "" if shard in (None, "0/1") else f", shard {shard} of it"
    name = extra.get("draw", "unknown")
    return f"{name if scope in (None, 'draw') else f'{name} ({scope})'}{part}, mode {extra.get('mode', 'unknown')}"


def _misses_text(result: ResultDocument) -> str:
    miss_types = result.details.miss_types
    return f"by the official checker's reason:\n{_tally_text(miss_types)}" if miss_types else ""


def _errors_text(result: ResultDocument) -> str:
    if not result.counts.error:
        return ""
    rule = {"fail": "counted as wrong", "exclude": "left out of the scores"}
    policy = str(result.extra.get("on_error", ""))
    return f"{rule.get(policy, one_line(policy))}:\n{_tally_text(result.details.error_types)}"


def _tally_text(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{count:>4}  {one_line(name)}" for name, count in ordered)
