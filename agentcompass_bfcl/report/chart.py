"""Scores as dots with their 95 % intervals, in SVG that needs no script and takes its colours from the page."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from typing import Any

import pygal
from pygal.style import Style

from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.statistics import Estimate
from agentcompass_bfcl.subsets import CATEGORIES

SERIES_COLOURS = 6
_ROOM = 0.8  # of the way from one score to the next, for the results beside each other
_SVG = "http://www.w3.org/2000/svg"


class _Dots(pygal.XY):  # type: ignore[misc]  # pygal has no annotations
    """An XY chart with whiskers: pygal 3.0 measures them from the whole point, where only Line gives it a number."""

    def _confidence_interval(self, node: Any, x: float, y: float, value: tuple[float, float], metadata: Any) -> None:
        super()._confidence_interval(node, x, y, value[1], metadata)


def score_chart(documents: Sequence[ResultDocument], names: Sequence[str]) -> str:
    """Draw both headline scores, the categories and the subsets of one or more results, a colour a result.

    Results stand beside each other, since nearly equal ones would hide one another.
    """
    labels = [
        "overall",
        "normalized",
        *CATEGORIES,
        *sorted({name for found in documents for name in found.details.subsets}),
    ]
    chart = _Dots(
        stroke=False,
        dots_size=4,
        x_label_rotation=40,
        range=(0, 100),
        xrange=(-_ROOM / 2, len(labels) - 1 + _ROOM / 2),
        show_x_guides=False,
        width=960,
        height=440,
        margin=10,
        js=[],
        show_legend=len(documents) > 1,
        legend_at_bottom=True,
        truncate_legend=60,
        truncate_label=40,
        value_formatter=lambda value: f"{value:.0f} %",
        x_value_formatter=lambda place: labels[round(place)],
        y_labels=range(0, 101, 20),
        no_data_text="no scores",
        style=_style(),
    )
    chart.uuid = "scores"  # otherwise another one every time
    chart.x_labels = [{"label": label, "value": place} for place, label in enumerate(labels)]
    for number, (document, name) in enumerate(zip(documents, names, strict=True), 1):
        aside = _ROOM * (number / (len(documents) + 1) - 0.5)
        points = [_point(document, label, place + aside) for place, label in enumerate(labels)]
        chart.add(name, [point for point in points if point is not None])
    return _without_scripts(chart.render(is_unicode=True))


def _point(document: ResultDocument, label: str, place: float) -> dict[str, object] | None:
    """Give a score with its interval; without one where the result has no error bars."""
    details, statistics = document.details, document.details.statistics
    if statistics is not None:
        bars: dict[str, Estimate | None] = {**statistics.subsets, **statistics.categories}
        bars |= {"overall": statistics.overall, "normalized": statistics.normalized}
        estimate = bars.get(label)
        if estimate is not None and estimate.interval is not None:
            low, high = estimate.interval
            return {"value": (place, estimate.score), "ci": {"low": low, "high": high}}
    scores = {name: subset.accuracy for name, subset in details.subsets.items()} | details.categories
    scores["overall"] = document.metrics.get("overall_accuracy")
    scores["normalized"] = document.metrics.get("normalized_single_turn_score")
    score = scores.get(label)
    return None if score is None else {"value": (place, score)}


def _style() -> Style:
    return Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--line)",
        colors=tuple(f"var(--run{number % SERIES_COLOURS})" for number in range(24)),
        font_family="system-ui, sans-serif",
        opacity="1",
        opacity_hover="1",
        transition="0s",
        ci_colors=(),
    )


def _without_scripts(svg: str) -> str:
    """Take out what pygal adds for its own script, and the comments with today's date."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)  # noqa: S314 - pygal wrote it just now; texts in it are escaped
    for parent in root.iter():
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}script":
                parent.remove(child)
    root.set("role", "img")
    root.set("aria-label", "Scores in percent, by category and subset, with 95 percent intervals")
    return ElementTree.tostring(root, encoding="unicode")
