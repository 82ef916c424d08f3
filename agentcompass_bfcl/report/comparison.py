"""A comparison in words and tables, for a terminal or in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from tabulate import tabulate

from agentcompass_bfcl.compare import Change, Comparison, Finding, Largest, RepeatSpread
from agentcompass_bfcl.errors import one_line
from agentcompass_bfcl.paired_rows import PairedRow
from agentcompass_bfcl.report.escaping import markdown_text
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.subsets import CATEGORIES

SHOWN_FLIPS = 20
NO_MCNEMAR = "McNemar's test takes one outcome a row, and there are several attempts"
_NONE = "-"
_SCORES = ("overall", "normalized", *CATEGORIES)
_SMALLEST_P = Fraction(1, 10_000)


@dataclass(frozen=True, slots=True)
class _Form:
    """How things are written: the table format, text that others chose, and what lines of their own begin with."""

    tables: str
    text: Callable[[str], str]
    line: str


_TERMINAL = _Form("simple", one_line, "")
_MARKDOWN = _Form("github", markdown_text, "- ")


def render_comparison(comparison: Comparison, *, every_flip: bool = False, markdown: bool = False) -> str:
    """Write one comparison: scores with their paired errors, what may be concluded, and the rows that flipped."""
    form = _MARKDOWN if markdown else _TERMINAL
    changes = comparison.changes
    names = [*(name for name in _SCORES if name in changes), *(name for name in changes if name not in _SCORES)]
    headers = ["score", "change", "std. error", "95 % interval", "clustered"]
    scores = _table(form, headers, [_change_cells(changes[name]) for name in names])
    subsets = [[name, found.gained, found.lost, found.same] for name, found in comparison.subsets.items()]
    blocks = [
        _sides(comparison, form),
        scores,
        conclusion(comparison),
        _facts(comparison, form),
        _table(form, ["subset", "gained", "lost", "same"], subsets),
        *_flips("gained", comparison.gained, form, every_flip=every_flip),
        *_flips("lost", comparison.lost, form, every_flip=every_flip),
    ]
    return "\n\n".join(blocks) + "\n"


def render_table(comparisons: Sequence[Comparison], *, markdown: bool = False) -> str:
    """Write several runs against the first, a line a run."""
    form = _MARKDOWN if markdown else _TERMINAL
    names = [name for name in _SCORES if any(name in comparison.changes for comparison in comparisons)]
    rows = [
        [
            _source(comparison.second, form),
            *(_short_cell(comparison.changes.get(name)) for name in names),
            _p_text(comparison.p),
            f"+{len(comparison.gained)} -{len(comparison.lost)}",
        ]
        for comparison in comparisons
    ]
    said = [
        f"{_source(comparison.second, form)}: {line}"
        for comparison in comparisons
        for line in (_finding(comparison), *_remarks(comparison, form))
    ]
    blocks = [
        f"changes against {_source(comparisons[0].first, form)} in points, with paired standard errors",
        _table(form, ["run", *names, "McNemar p", "flips"], rows),
        "\n".join(f"{form.line}{line}" for line in said),
    ]
    return "\n\n".join(blocks) + "\n"


def conclusion(comparison: Comparison) -> str:
    """Say in two sentences what may be concluded of overall, and how large a difference would have been seen."""
    change = comparison.changes["overall"]
    if change.standard_error is None:
        return _finding(comparison)
    if change.detectable is None:
        how = "Every row changed alike" if change.difference else "No row flipped"
        least = f"{how}, so that these runs do not tell how large a difference would have been shown."
    else:
        least = f"These rows would have shown a difference of {change.detectable * 100:.2f} points with 80 % power."
    return f"{_finding(comparison)}\n{least}"


def render_spread(spread: RepeatSpread, tested: Sequence[Comparison] = (), *, markdown: bool = False) -> str:
    """Say how much runs of one build differ, and whether ``tested``, all against the first, are within that."""
    form = _MARKDOWN if markdown else _TERMINAL
    most = spread.between_any
    normalized = "" if most.normalized is None else f", normalized by up to {_size(most.normalized)} points"
    summary = (
        f"With nothing changed, {spread.runs} runs of one build differ in up to {_size(most.changed_share)} % of the"
        f" rows, overall by up to {_size(most.overall)} points{normalized}."
    )
    rows = [
        [
            f"{_source(pair.first, form)}, {_source(pair.second, form)}",
            *_with_error(pair.changes["overall"]),
            *_with_error(pair.changes.get("normalized")),
            _size(pair.changed_share),
        ]
        for pair in spread.pairs
    ]
    headers = ["two runs", "overall", "std. error", "normalized", "std. error", "rows changed %"]
    lines = [
        f"{_source(pair.first, form)}, {_source(pair.second, form)}: {line}"
        for pair in spread.pairs
        for line in (*_other_model(pair, form), *_remarks(pair, form))
    ]
    lines += [_against_repeats(comparison, spread.from_first, form) for comparison in tested]
    blocks = [summary, _table(form, headers, rows), "\n".join(f"{form.line}{line}" for line in lines)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _finding(comparison: Comparison) -> str:
    change, finding = comparison.changes["overall"], comparison.finding
    if change.interval is None:
        return "Nothing can be concluded: the standard error of the difference on overall is undefined."
    test = "" if comparison.p is None else f", McNemar p {_p_text(comparison.p, equals='= ')}"
    bars = f"95 % interval {_points(change.interval[0])} to {_points(change.interval[1])}{test}"
    if finding in (Finding.BETTER, Finding.WORSE):
        size = _size(abs(change.difference))
        return f"The second run is {finding} than the first on overall by {size} points ({bars})."
    points = f"{_points(change.difference)} points"
    if finding is Finding.DOUBTFUL:
        return f"A difference on overall is doubtful: {points}, and interval and exact test disagree ({bars})."
    return f"No difference on overall is shown: {points} ({bars})."


def _against_repeats(comparison: Comparison, most: Largest, form: _Form) -> str:
    parts = []
    for name, limit in (("overall", most.overall), ("normalized", most.normalized)):
        if limit is not None and name in comparison.changes:
            size = abs(comparison.changes[name].difference)
            word = "within" if size <= limit else "beyond"
            parts.append(f"{name} differs from the first by {_size(size)} points, {word} that ({_size(limit)})")
    more = "more than" if comparison.changed_share > most.changed_share else "no more than"
    parts.append(f"{_size(comparison.changed_share)} % of the rows changed, {more} there ({_size(most.changed_share)})")
    return f"{_source(comparison.second, form)}: {'; '.join(parts)}"


def _other_model(pair: Comparison, form: _Form) -> list[str]:
    one, other = (str(record.identity.get("model")) for record in (pair.first, pair.second))
    return [] if one == other else [f"model: {form.text(one)}, then {form.text(other)}; is that one build?"]


def _sides(comparison: Comparison, form: _Form) -> str:
    lines = []
    for name, record in (("first", comparison.first), ("second", comparison.second)):
        metrics = record.document.metrics
        scores = [metrics.get(key) for key in ("overall_accuracy", "normalized_single_turn_score")]
        overall, normalized = (_NONE if score is None else f"{score:.2f}" for score in scores)
        model = form.text(str(record.identity.get("model")))
        lines.append(
            f"{form.line}{name:<7} {_source(record, form)}  {model}  overall {overall}, normalized {normalized}"
        )
    return "\n".join(lines)


def _facts(comparison: Comparison, form: _Form) -> str:
    share = f"{comparison.changed_rows} of {comparison.rows + comparison.left_out}"
    lines = [
        f"{comparison.rows} rows compared: {len(comparison.gained)} gained, {len(comparison.lost)} lost",
        f"{share} rows came out otherwise in any way ({_size(comparison.changed_share)} %)",
        f"standard error of overall if the runs were of different rows: {_error(comparison.unpaired_variance)}",
        *_remarks(comparison, form),
    ]
    return "\n".join(f"{form.line}{line}" for line in lines)


def _remarks(comparison: Comparison, form: _Form) -> list[str]:
    lines = [form.text(note) for note in comparison.notes]
    if comparison.left_out:
        count = comparison.left_out
        lines.insert(
            0, f"{count} {'row' if count == 1 else 'rows'} left out: no verdict in one of the runs, or in both"
        )
    if comparison.p is None:
        lines.insert(0, f"no p: {NO_MCNEMAR}")
    return lines


def _flips(title: str, flips: Sequence[PairedRow], form: _Form, *, every_flip: bool) -> list[str]:
    if not flips:
        return []
    shown = flips if every_flip else flips[:SHOWN_FLIPS]
    indent = form.line or "  "
    lines = [f"{indent}{form.text(row.id)}  {' '.join(row.before)} -> {' '.join(row.after)}" for row in shown]
    if len(shown) < len(flips):
        lines.append(f"{indent}and {len(flips) - len(shown)} more; --all lists them")
    return [f"{title} ({len(flips)})\n" + ("\n" if form is _MARKDOWN else "") + "\n".join(lines)]


def _table(form: _Form, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    alignment = ("left", *["right"] * (len(headers) - 1))
    return tabulate(rows, headers=headers, tablefmt=form.tables, colalign=alignment, disable_numparse=True)


def _change_cells(change: Change) -> list[str]:
    interval = _NONE if change.interval is None else " to ".join(_points(end) for end in change.interval)
    return [change.name, *_with_error(change), interval, _error(change.clustered_variance)]


def _with_error(change: Change | None) -> list[str]:
    return [_NONE, _NONE] if change is None else [_points(change.difference), _error(change.variance)]


def _short_cell(change: Change | None) -> str:
    return _NONE if change is None else f"{_points(change.difference)} ({_error(change.variance)})"


def _source(record: RunRecord, form: _Form) -> str:
    return form.text(str(record.source))


def _points(value: Fraction | float) -> str:
    points = float(value) * 100
    return f"{points:+.2f}" if round(points, 2) else "0.00"


def _size(share: Fraction) -> str:
    return f"{float(share) * 100:.2f}"


def _error(variance: Fraction | None) -> str:
    return _NONE if variance is None else f"{sqrt(variance) * 100:.2f}"


def _p_text(p: Fraction | None, equals: str = "") -> str:
    if p is None:
        return _NONE
    return f"{equals}{float(p):.2g}" if p >= _SMALLEST_P else "< 0.0001"
