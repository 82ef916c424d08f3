"""A comparison in words and tables, and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

from tabulate import tabulate

from agentcompass_bfcl.compare import Change, Comparison, Flip, RepeatSpread
from agentcompass_bfcl.subsets import CATEGORIES

SHOWN_FLIPS = 20
_NONE = "-"
_HEADLINES = ("overall", "normalized", *CATEGORIES)


def render_comparison(comparison: Comparison, *, every_flip: bool = False, tablefmt: str = "simple") -> str:
    """Write one comparison: scores with their paired errors, what may be concluded, and the rows that flipped."""
    changes = comparison.changes
    rows = [_change_cells(changes[name]) for name in _ordered(changes)]
    headers = ["score", "change", "std. error", "95 % interval", "clustered"]
    scores = tabulate(
        rows, headers=headers, tablefmt=tablefmt, colalign=("left", *["right"] * 4), disable_numparse=True
    )
    subsets = tabulate(
        [[name, found.gained, found.lost, found.same] for name, found in comparison.subsets.items()],
        headers=["subset", "gained", "lost", "same"],
        tablefmt=tablefmt,
    )
    blocks = [_sides(comparison), scores, conclusion(comparison), _facts(comparison), subsets]
    blocks += [
        _flips(title, flips, every_flip=every_flip)
        for title, flips in (("gained", comparison.gained), ("lost", comparison.lost))
        if flips
    ]
    return "\n\n".join(blocks) + "\n"


def render_table(comparisons: Sequence[Comparison], *, tablefmt: str = "simple") -> str:
    """Write several runs against the first, a line a run."""
    names = [name for name in _HEADLINES if any(name in comparison.changes for comparison in comparisons)]
    rows = [
        [
            str(comparison.second.source),
            *(_cell(comparison.changes.get(name)) for name in names),
            _NONE if comparison.p is None else f"{float(comparison.p):.3g}",
            f"+{len(comparison.gained)} -{len(comparison.lost)}",
        ]
        for comparison in comparisons
    ]
    table = tabulate(rows, headers=["run", *names, "McNemar p", "flips"], tablefmt=tablefmt, disable_numparse=True)
    first = comparisons[0].first
    notes = [f"{comparison.second.source}: {note}" for comparison in comparisons for note in comparison.notes]
    listed = "".join(f"\n{note}" for note in notes)
    return f"changes against {first.source} in points, with paired standard errors\n\n{table}\n{listed}"


def conclusion(comparison: Comparison) -> str:
    """Say in two sentences what may be concluded of overall, and how large a difference would have been seen."""
    change = comparison.changes["overall"]
    interval, points = change.interval, _points(change.difference)
    if interval is None:
        return "Nothing can be concluded: the standard error of the difference is undefined."
    bars = f"95 % interval {_points(interval[0])} to {_points(interval[1])}"
    tested = "" if comparison.p is None else f", McNemar p = {float(comparison.p):.2g}"
    shown = interval[0] > 0 or interval[1] < 0
    agreed = shown and (comparison.p is None or comparison.p < Fraction(1, 20))
    if agreed:
        word = "better" if change.difference > 0 else "worse"
        first = f"The second run is {word} than the first on overall: {points} points ({bars}{tested})."
    elif shown:
        first = (
            f"A difference on overall is doubtful: {points} points; interval and exact test disagree ({bars}{tested})."
        )
    else:
        first = f"No difference on overall is shown: {points} points ({bars}{tested})."
    least = change.detectable or 0.0
    return f"{first}\nThese rows would have shown a difference of {least * 100:.2f} points with 80 % power."


def render_spread(spread: RepeatSpread, tested: Sequence[Comparison] = ()) -> str:
    """Say how much runs of one build differ, and whether other differences are within that."""
    normalized = "" if spread.normalized is None else f", normalized by {float(spread.normalized) * 100:.2f}"
    lines = [
        f"With nothing changed, {spread.runs} runs of one build differ in up to"
        f" {float(spread.changed_share) * 100:.2f} % of the rows,"
        f" overall by up to {float(spread.overall) * 100:.2f} points{normalized}."
    ]
    for comparison in tested:
        difference = abs(comparison.changes["overall"].difference)
        word = "within" if difference <= spread.overall else "beyond"
        more = "more" if comparison.changed_share > spread.changed_share else "no more"
        lines.append(
            f"{comparison.second.source}: its difference on overall, {float(difference) * 100:.2f} points, is {word}"
            f" that; {float(comparison.changed_share) * 100:.2f} % of its rows changed, {more} than there."
        )
    return "\n".join(lines) + "\n"


def comparison_json(comparisons: Sequence[Comparison], spread: RepeatSpread | None = None) -> str:
    """Write comparisons canonically: percentage points, null where undefined, every flip."""
    document: dict[str, Any] = {
        "schema_version": 1,
        "first": _side(comparisons[0], "first"),
        "comparisons": [_comparison(comparison) for comparison in comparisons],
    }
    if spread is not None:
        document["same_build"] = spread_json(spread)
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def spread_json(spread: RepeatSpread) -> dict[str, Any]:
    """Give the spread of repeated runs as JSON: shares in percent, differences in points."""
    return {
        "runs": spread.runs,
        "changed_rows_percent": _number(spread.changed_share),
        "overall_points": _number(spread.overall),
        "normalized_points": _number(spread.normalized),
        "pairs": [_comparison(pair) for pair in spread.pairs],
    }


def _ordered(changes: Any) -> list[str]:
    return [*(name for name in _HEADLINES if name in changes), *(name for name in changes if name not in _HEADLINES)]


def _change_cells(change: Change) -> list[str]:
    interval = _NONE if change.interval is None else " to ".join(_points(end) for end in change.interval)
    return [
        change.name,
        _points(change.difference),
        _error(change.variance),
        interval,
        _error(change.clustered_variance),
    ]


def _cell(change: Change | None) -> str:
    return _NONE if change is None else f"{_points(change.difference)} ({_error(change.variance)})"


def _points(value: Fraction | float) -> str:
    points = float(value) * 100
    return f"{points:+.2f}" if round(points, 2) else "0.00"


def _error(variance: Fraction | None) -> str:
    return _NONE if variance is None else f"{sqrt(variance) * 100:.2f}"


def _number(value: Fraction | float | None) -> float | None:
    return None if value is None else round(float(value) * 100, 4)


def _sides(comparison: Comparison) -> str:
    lines = []
    for name, record in (("first", comparison.first), ("second", comparison.second)):
        score = record.document.metrics.get("overall_accuracy")
        shown = _NONE if score is None else f"{score:.2f}"
        lines.append(f"{name:<7} {record.source}  {record.identity.get('model')}  overall {shown}")
    return "\n".join(lines)


def _facts(comparison: Comparison) -> str:
    changed = f"{comparison.changed_rows} of {comparison.rows + comparison.left_out}"
    lines = [
        f"rows       {comparison.rows} compared; {changed} came out otherwise"
        f" ({float(comparison.changed_share) * 100:.2f} %),"
        f" {len(comparison.gained)} gained, {len(comparison.lost)} lost"
    ]
    if comparison.left_out:
        lines.append(f"left out   {comparison.left_out} rows without a verdict in either run")
    if comparison.unpaired_variance is not None:
        lines.append(f"unpaired   std. error of overall would be {_error(comparison.unpaired_variance)}")
    if comparison.p is None:
        lines.append("McNemar    not shown: it takes one outcome a row, and there are several attempts")
    lines += [f"note       {note}" for note in comparison.notes]
    return "\n".join(lines)


def _flips(title: str, flips: Sequence[Flip], *, every_flip: bool) -> str:
    shown = flips if every_flip else flips[:SHOWN_FLIPS]
    more = "" if len(shown) == len(flips) else f"\n  and {len(flips) - len(shown)} more; --all lists them"
    lines = "\n".join(f"  {flip.id}  {_outcomes(flip.before)} -> {_outcomes(flip.after)}" for flip in shown)
    return f"{title} ({len(flips)})\n{lines}{more}"


def _outcomes(outcomes: Sequence[str]) -> str:
    return " ".join(str(outcome) for outcome in outcomes)


def _side(comparison: Comparison, name: str) -> dict[str, Any]:
    record = comparison.first if name == "first" else comparison.second
    return {
        "source": str(record.source),
        "model": record.identity.get("model"),
        "overall_accuracy": record.document.metrics.get("overall_accuracy"),
        "normalized_single_turn_score": record.document.metrics.get("normalized_single_turn_score"),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "second": _side(comparison, "second"),
        "changes": {name: _change(change) for name, change in comparison.changes.items()},
        "mcnemar_p": None if comparison.p is None else float(comparison.p),
        "unpaired_standard_error": None
        if comparison.unpaired_variance is None
        else round(sqrt(comparison.unpaired_variance) * 100, 4),
        "rows": comparison.rows,
        "left_out": comparison.left_out,
        "changed_rows": comparison.changed_rows,
        "gained": [_flip(flip) for flip in comparison.gained],
        "lost": [_flip(flip) for flip in comparison.lost],
        "subsets": {
            name: {"gained": found.gained, "lost": found.lost, "same": found.same}
            for name, found in comparison.subsets.items()
        },
        "conclusion": conclusion(comparison),
        "notes": list(comparison.notes),
    }


def _change(change: Change) -> dict[str, Any]:
    interval = change.interval
    return {
        "difference": _number(change.difference),
        "standard_error": _number(change.standard_error),
        "interval": None if interval is None else [_number(end) for end in interval],
        "clustered_standard_error": None
        if change.clustered_variance is None
        else round(sqrt(change.clustered_variance) * 100, 4),
        "detectable_difference": _number(change.detectable),
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "id": flip.id,
        "subset": flip.subset,
        "before": [str(outcome) for outcome in flip.before],
        "after": [str(outcome) for outcome in flip.after],
    }
