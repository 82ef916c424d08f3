"""A result as Markdown, for a pull request or a model card."""

from __future__ import annotations

from agentcompass_bfcl.report.escaping import markdown_code, markdown_text
from agentcompass_bfcl.report.numbers import error_bars, number
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.statistics import Estimate
from agentcompass_bfcl.subsets import CATEGORIES


def render_markdown(document: ResultDocument) -> str:
    """Write both scores and the categories with their error bars, the subsets, and what the run was."""
    details, extra = document.details, document.extra
    statistics = details.statistics
    bars: dict[str, Estimate | None] = {}
    if statistics is not None:
        bars = {**statistics.categories, "normalized": statistics.normalized, "overall": statistics.overall}
    scores = {
        "overall": document.metrics.get("overall_accuracy"),
        "normalized": document.metrics.get("normalized_single_turn_score"),
        **{name: details.categories[name] for name in CATEGORIES if name in details.categories},
    }
    counts = document.counts
    lines = [
        f"### BFCL v4 single-turn: {markdown_text(str(extra.get('model')))}",
        "",
        f"Draw {markdown_text(str(extra.get('draw')))}, mode {markdown_text(str(extra.get('mode')))};"
        f" {counts.total} samples, {counts.evaluated} evaluated, {counts.error} errors.",
        "",
        "| score | % | std. error | 95 % interval | clustered |",
        "|---|--:|--:|--:|--:|",
        *(f"| {name} | {number(score)} | {' | '.join(error_bars(bars.get(name)))} |" for name, score in scores.items()),
        "",
        "| subset | hits | n | errors | accuracy % |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {markdown_text(name)} | {found.hits} | {found.n} | {found.errors} | {number(found.accuracy)} |"
            for name, found in details.subsets.items()
        ),
        "",
        markdown_code(str(extra.get("fingerprint"))),
    ]
    return "\n".join(lines) + "\n"
