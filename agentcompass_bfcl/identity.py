"""What a run was: the facts that decide whether two runs may be merged, compared or gated together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.draw import DrawSpec, fingerprint, select
from agentcompass_bfcl.official import checker_identity
from agentcompass_bfcl.settings import RunSettings


def expected_entries(settings: RunSettings, dataset: Dataset, sample_ids: Iterable[str] | None) -> tuple[Entry, ...]:
    """List the rows a run has to score: its shard of its draw, narrowed to ``sample_ids`` if there are any."""
    entries = settings.shard.take(select(settings.spec, dataset))
    wanted = None if sample_ids is None else set(sample_ids)
    return tuple(entry for entry in entries if wanted is None or entry.id in wanted)


def question_identity(settings: RunSettings, dataset: Dataset, request: Mapping[str, Any]) -> dict[str, Any]:
    """Give what was asked, and how it is judged: equal for all shards of a run, whatever the model.

    ``request`` are the model's parameters, secrets removed.
    """
    return {
        "draw": settings.draw_name,
        "spec": spec_json(settings.spec),
        "draw_fingerprint": fingerprint(settings.spec, (entry.id for entry in select(settings.spec, dataset))),
        "dataset": dataset.identity,
        "checker": checker_identity(),
        "mode": settings.mode.value,
        "tool_choice": None if settings.tool_choice is None else settings.tool_choice.value,
        "strip_think": settings.strip_think,
        "request": dict(request),
        "on_error": settings.on_error.value,
    }


# What must agree before two results may be added up or compared; ``attempts`` is how often each row was asked.
QUESTION_KEYS = (
    *("draw_fingerprint", "dataset", "checker", "mode", "tool_choice", "strip_think"),
    *("request", "on_error", "attempts", "official_errors"),
)


def differences(first: Mapping[str, Any], second: Mapping[str, Any], keys: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """Give the facts in which two identities differ, each with both values; a fact that is absent is None."""
    pairs = {key: (first.get(key), second.get(key)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def short_identity(identity: Mapping[str, Any]) -> str:
    """Shorten an identity to eight hexadecimal digits. Runs that differ in it must never reuse each other's rows."""
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def spec_json(spec: DrawSpec) -> dict[str, Any]:
    """Write a draw's rule as JSON."""
    return {
        "categories": list(spec.categories),
        "category_pct": dict(spec.category_pct),
        "subset_floor": spec.subset_floor,
        "subsets": list(spec.subsets),
        "limit": spec.limit,
    }


def without_credentials(url: str) -> str:
    """Drop user, password and query from a URL: gateways take keys in each of them."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
