"""Results made by hand, as runs leave them, for what is done with finished runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentcompass_bfcl.aggregate import OnError
from agentcompass_bfcl.clusters import clusters
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import PRESETS, DrawSpec, fingerprint, select
from agentcompass_bfcl.identity import question_identity
from agentcompass_bfcl.result import build_document, read_document
from agentcompass_bfcl.rows import Row, tally_rows
from agentcompass_bfcl.run_record import RunRecord
from agentcompass_bfcl.settings import RunSettings
from agentcompass_bfcl.shard import Shard
from agentcompass_bfcl.tally import Outcome

type Play = Callable[[Entry], tuple[Outcome, ...]]

WHOLE = Shard()
HIT, MISS, ERROR = Outcome.HIT, Outcome.MISS, Outcome.ERROR


def two_in_three(entry: Entry) -> tuple[Outcome, ...]:
    return (MISS if entry.row % 3 == 2 else HIT,)


def record(
    dataset: Dataset,
    /,
    play: Play = two_in_three,
    *,
    spec: DrawSpec = PRESETS["mini"],
    shard: Shard = WHOLE,
    source: str | None = None,
    started: str | None = None,
    on_error: OnError = OnError.FAIL,
    error_type: str = "transport_http_500",
    k: int = 1,
    strategy: str = "avg",
    truncated: int = 0,
    malformed_abstentions: int = 0,
    **identity: Any,
) -> RunRecord:
    """Make the record of a run, or of a shard of it, whose rows came out as ``play`` says; the rest is its identity."""
    settings = RunSettings(spec=spec, shard=shard, on_error=on_error)
    entries = shard.take(select(spec, dataset))
    rows = [Row(entry.id, entry.subset, play(entry)) for entry in entries]
    counts = {outcome: sum(found is outcome for row in rows for found in row.outcomes) for outcome in Outcome}
    any_of = strategy == "pass"
    document = build_document(
        tally_rows(rows, any_of=any_of),
        on_error=on_error,
        identity={
            **question_identity(settings, dataset, {"temperature": 0, "seed": 42}),
            "fingerprint": fingerprint(spec, (entry.id for entry in entries)),
            "shard": str(shard),
            "model": "some-model",
            "base_url": "http://127.0.0.1:8000/v1",
            "harness": "bfcl_chat",
            "concurrency": 1,
            "attempts": {"k": k, "strategy": strategy},
            "versions": {"agentcompass": "1.0.1", "agentcompass-bfcl": "0.1.0"},
            **identity,
        },
        miss_types={"value_error:string": counts[MISS]} if counts[MISS] else {},
        error_types={error_type: counts[ERROR]} if counts[ERROR] else {},
        rows=rows,
        clusters=clusters(entries),
        truncated=truncated,
        malformed_abstentions=malformed_abstentions,
        any_of=any_of,
    )
    return RunRecord(Path(source or f"shard-{shard.index}"), document, started, is_directory=False)


def edited(found: RunRecord, change: Callable[[dict[str, Any]], None]) -> RunRecord:
    """Change a record's JSON, as somebody would with an editor."""
    payload: dict[str, Any] = json.loads(found.document.to_json())
    change(payload)
    return RunRecord(found.source, read_document(payload, str(found.source)), found.started, found.is_directory)


def written(found: RunRecord, file: Path) -> Path:
    file.write_text(found.document.to_json(), encoding="utf-8")
    return file


def without(identity: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {name: value for name, value in identity.items() if name not in keys}
