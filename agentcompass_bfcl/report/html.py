"""A report in one HTML file: no network, no script needed to read it, and nothing of a model's text is markup."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, StrictUndefined

from agentcompass_bfcl.aggregate import OnError, aggregate
from agentcompass_bfcl.compare import Comparison
from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.report.chart import SERIES_COLOURS, score_chart
from agentcompass_bfcl.report.escaping import xml_text
from agentcompass_bfcl.report.numbers import interval, number
from agentcompass_bfcl.report.side_by_side import Sides, readable_calls, shown_text, side_by_side
from agentcompass_bfcl.report.usage import usage
from agentcompass_bfcl.result import ResultDocument
from agentcompass_bfcl.run_dir import Attempt
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.subsets import CATEGORIES
from agentcompass_bfcl.task import Mode

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
    sides: Sides


@dataclass(frozen=True, slots=True)
class Reported:
    """A run and its attempts; a result in JSON has none, and its misses cannot be shown."""

    record: RunRecord
    attempts: Sequence[Attempt] = ()


def render_html(
    runs: Sequence[Reported],
    dataset: Dataset,
    comparisons: Mapping[int, Comparison] = MappingProxyType({}),
    notes: Sequence[str] = (),
    official: Official | None = None,
) -> str:
    """Write the report of one run, or of several over each other; the same runs give the same bytes.

    ``comparisons`` are of further runs, by their place, with the first; ``notes`` say why one is not there. Misses and
    errors are listed with question, reference and reply where there are attempts. ``official`` decodes the calls in
    texts of prompt mode; without it these are shown as they came.
    """
    documents = [run.record.document for run in runs]
    names = _names(documents)
    samples = [sample for number, run in enumerate(runs) for sample in _samples(number, run, dataset, official)]
    script = _resource("report.js")
    template = _environment().from_string(_resource("report.html"))
    page = template.render(
        runs=[_run(run, name) for run, name in zip(runs, names, strict=True)],
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
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"number": number, "interval": interval}
    environment.filters["points"] = lambda value: f"{float(value) * 100:+.2f}"
    return environment


def _resource(name: str) -> str:
    return (resources.files("agentcompass_bfcl.report") / "templates" / name).read_text(encoding="utf-8")


def _names(documents: Sequence[ResultDocument]) -> list[str]:
    """Name runs for a legend: by model, and numbered where one model has several."""
    models = [xml_text(str(document.extra.get("model"))) for document in documents]
    return [model if models.count(model) == 1 else f"{model} ({number})" for number, model in enumerate(models, 1)]


def _run(run: Reported, name: str) -> dict[str, Any]:
    document = run.record.document
    identity = [(key, _shown(document.extra[key])) for key in _IDENTITY if key in document.extra]
    shards = document.extra.get("shards")
    if isinstance(shards, list):
        identity.append(("shards", f"merged from {len(shards)}"))
    return {
        "name": name,
        "source": str(run.record.source),
        "document": document,
        "categories": [
            (key, document.details.categories[key]) for key in CATEGORIES if key in document.details.categories
        ],
        "weights": list(_weights(document)),
        "identity": identity,
        "usage": usage(run.attempts) if run.attempts else None,
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


def _samples(number: int, run: Reported, dataset: Dataset, official: Official | None) -> Iterable[Sample]:
    mode = Mode.PROMPT if run.record.identity.get("mode") == Mode.PROMPT.value else Mode.FC
    for attempt in run.attempts:
        if attempt.verdict == "hit":
            continue
        entry, record = dataset.entry(attempt.sample_id), attempt.record
        output = None if record is None else record.output
        yield Sample(
            run=number,
            id=attempt.sample_id if attempt.number == 1 else f"{attempt.sample_id} attempt {attempt.number}",
            subset=attempt.subset,
            verdict=attempt.verdict,
            kind=attempt.kind,
            detail=shown_text(attempt.problem or ("" if record is None else record.detail)),
            question=shown_text("\n".join(f"{message['role']}: {message['content']}" for message in entry.messages())),
            sides=side_by_side(entry, output, readable_calls(entry, output, mode, official)),
        )


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else str(value)
