"""A result as text for a terminal: subsets, categories, both scores, counts and identity."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tabulate import tabulate

from agentcompass_bfcl.result import ResultDocument

_NO_SCORE = "-"


def render_text(result: ResultDocument, run_dir: Path | None = None) -> str:
    """Write the tables, ending in a newline. The same result gives the same text."""
    blocks = [_subset_table(result), _score_table(result), _facts(result, run_dir)]
    return "\n\n".join(blocks) + "\n"


def _subset_table(result: ResultDocument) -> str:
    rows = [
        [name, subset.category or _NO_SCORE, subset.hits, subset.n, subset.errors, _percent(subset.accuracy)]
        for name, subset in result.details.subsets.items()
    ]
    headers = ["subset", "category", "hits", "n", "errors", "accuracy %"]
    return tabulate(
        rows, headers=headers, tablefmt="simple", colalign=("left", "left", *["right"] * 4), disable_numparse=True
    )


def _score_table(result: ResultDocument) -> str:
    metrics = result.metrics
    rows: list[list[str]] = [[name, _percent(score)] for name, score in result.details.categories.items()]
    rows.append(["normalized (mean of the categories)", _percent(metrics.get("normalized_single_turn_score"))])
    rows.append(["overall (every sample alike)", _percent(metrics.get("overall_accuracy"))])
    return tabulate(rows, headers=["score", "%"], tablefmt="simple", colalign=("left", "right"), disable_numparse=True)


def _facts(result: ResultDocument, run_dir: Path | None) -> str:
    counts, extra = result.counts, result.extra
    facts = {
        "samples": f"{counts.total} total, {counts.evaluated} evaluated, {counts.error} error",
        "misses": _misses_text(result),
        "errors": _errors_text(result),
        "truncated": f"{result.details.truncated} replies cut off at the token limit"
        if result.details.truncated
        else "",
        "absent": ", ".join(result.details.absent),
        "draw": _draw_text(extra),
        "fingerprint": str(extra.get("fingerprint", "")),
        "model": _model_text(extra),
        "run": "" if run_dir is None else str(run_dir),
    }
    shown = {name: text for name, text in facts.items() if text}
    width = max(map(len, shown))
    below = "\n" + " " * (width + 2)
    return "\n".join(f"{name:<{width}}  {text.replace('\n', below)}" for name, text in shown.items())


def _model_text(extra: Mapping[str, object]) -> str:
    model, source = extra.get("model", ""), extra.get("source")
    if "base_url" not in extra and source is not None:
        return f"{model} ({source})"
    place = f"{model} at {extra.get('base_url') or 'the default endpoint'}"
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
    return f"{rule.get(policy, policy)}:\n{_tally_text(result.details.error_types)}"


def _tally_text(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "\n".join(f"{count:>4}  {name}" for name, count in ordered)


def _percent(value: float | None) -> str:
    return _NO_SCORE if value is None else f"{value:.2f}"
