"""A report in one HTML file: no network, no script needed to read it, and nothing of a model's text is markup."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.compare import Comparison
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.drawn_rows import drawn_attempts
from agentcompass_bfcl.explain import differences
from agentcompass_bfcl.report.chart import SERIES_COLOURS, score_chart
from agentcompass_bfcl.report.escaping import xml_text
from agentcompass_bfcl.report.numbers import interval, number
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.run_dir import Attempt
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.subsets import CATEGORIES

_LONGEST_TEXT = 3_000
_IDENTITY = (
    *(
        "model",
        "base_url",
        "draw",
        "mode",
        "shard",
        "scope",
        "fingerprint",
        "dataset",
        "checker",
        "request",
        "tool_choice",
    ),
    *("strip_think", "on_error", "attempts", "harness", "harness_params", "concurrency", "versions", "source"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A miss or an error, ready to be shown."""

    run: int
    id: str
    subset: str
    verdict: str
    kind: str
    detail: str
    question: str
    expected: str
    actual: str
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Latencies in milliseconds and token counts of a run's replies; None where the endpoint said nothing."""

    replies: int
    latency: tuple[float, float] | None
    prompt: tuple[float, float, int] | None
    completion: tuple[float, float, int] | None


def render_html(
    records: Sequence[RunRecord], dataset: Dataset, comparisons: Sequence[Comparison] = (), notes: Sequence[str] = ()
) -> str:
    """Write the report of one run, or of several over each other; the same runs give the same bytes.

    ``comparisons`` are of each further run with the first, and ``notes`` say why one is not there. Misses and errors
    are listed with question, reference and reply where there is a run directory; a result in JSON holds none of these.
    """
    documents = [record.document for record in records]
    names = _names(records)
    attempts = [drawn_attempts(record.source, dataset) if record.is_directory else [] for record in records]
    samples = [sample for run, found in enumerate(attempts) for sample in _samples(run, found, dataset)]
    script = _resource("report.js")
    template = _environment().from_string(_resource("report.html"))
    page = template.render(
        runs=[_run(record, name, found) for record, name, found in zip(records, names, attempts, strict=True)],
        chart=score_chart(documents, names),
        samples=samples,
        subsets=sorted({sample.subset for sample in samples}),
        kinds=sorted({sample.kind for sample in samples}),
        comparisons=comparisons,
        notes=notes,
        colours=SERIES_COLOURS,
        script=script,
        style=_resource("report.css"),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair has no place in a file


def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": number, "interval": interval}
    environment.filters["points"] = lambda value: f"{float(value) * 100:+.2f}"
    return environment


def _resource(name: str) -> str:
    return (resources.files("agentcompass_bfcl.report") / "templates" / name).read_text(encoding="utf-8")


def _names(records: Sequence[RunRecord]) -> list[str]:
    """Name runs for a legend: by model, and numbered where one model has several."""
    models = [xml_text(str(record.identity.get("model"))) for record in records]
    return [model if models.count(model) == 1 else f"{model} ({number})" for number, model in enumerate(models, 1)]


def _run(record: RunRecord, name: str, attempts: Sequence[Attempt]) -> dict[str, Any]:
    document = record.document
    identity = [(key, _shown(document.extra[key])) for key in _IDENTITY if key in document.extra]
    return {
        "name": name,
        "source": str(record.source),
        "document": document,
        "categories": [
            (key, document.details.categories[key]) for key in CATEGORIES if key in document.details.categories
        ],
        "weights": list(_weights(document)),
        "identity": identity,
        "usage": _usage(attempts) if attempts else None,
    }


def _weights(document: ResultDocument) -> Iterable[dict[str, Any]]:
    """Give the way from subsets to normalized: each subset's hits, its weight, and what it adds, in points."""
    scores = aggregate(document.tallies(), OnError(str(document.extra.get("on_error", "fail"))))
    for name, (hits, rows) in scores.counted.items():
        weight, accuracy = scores.exact.coefficients.get(name, Fraction(0)), scores.exact.subsets[name]
        yield {
            "subset": name,
            "share": f"{hits}/{rows}",
            "accuracy": float(accuracy) * 100,
            "weight": f"{weight.numerator}/{weight.denominator}" if weight else "0",
            "adds": float(weight * accuracy) * 100,
        }


def _samples(run: int, attempts: Sequence[Attempt], dataset: Dataset) -> Iterable[Sample]:
    for attempt in attempts:
        if attempt.verdict == "hit":
            continue
        entry, record = dataset.entry(attempt.sample_id), attempt.record
        reference = entry.reference_answers()
        output = None if record is None else record.output
        yield Sample(
            run=run,
            id=attempt.sample_id if attempt.number == 1 else f"{attempt.sample_id} attempt {attempt.number}",
            subset=attempt.subset,
            verdict=attempt.verdict,
            kind=attempt.kind,
            detail=_cut(attempt.problem or ("" if record is None else record.detail)),
            question=_cut("\n".join(f"{message['role']}: {message['content']}" for message in entry.messages())),
            expected=_cut(_lines(reference)) if reference else "",
            actual="" if record is None else _cut(_lines(output)),
            differs=tuple(_cut(text) for text in _differences(output, reference)),
        )


def _differences(output: Any, reference: list[dict[str, Any]]) -> list[str]:
    """Say in words what differs, of native calls that can be decoded."""
    try:
        calls = [{name: json.loads(arguments) for name, arguments in call.items()} for call in output]
    except (TypeError, ValueError, AttributeError, RecursionError):
        return []
    well_formed = all(len(call) == 1 and isinstance(next(iter(call.values())), dict) for call in calls)
    return differences(calls, reference) if calls and reference and well_formed else []


def _lines(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(json.dumps(item, ensure_ascii=False) for item in value) or "(nothing)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    shown = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}... ({len(shown)} characters)"


def _usage(attempts: Iterable[Attempt]) -> Usage:
    records = [attempt.record for attempt in attempts if attempt.record is not None]
    latency = [record.latency_ms for record in records if record.latency_ms is not None]
    prompt = [record.prompt_tokens for record in records if record.prompt_tokens is not None]
    completion = [record.completion_tokens for record in records if record.completion_tokens is not None]
    return Usage(
        replies=len(records),
        latency=(_quantile(latency, 50), _quantile(latency, 95)) if latency else None,
        prompt=(_quantile(prompt, 50), _quantile(prompt, 95), sum(prompt)) if prompt else None,
        completion=(_quantile(completion, 50), _quantile(completion, 95), sum(completion)) if completion else None,
    )


def _quantile(values: Sequence[float], percent: int) -> float:
    """Give the smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else str(value)
