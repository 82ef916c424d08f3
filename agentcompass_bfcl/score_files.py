"""Score files in bfcl-eval's format: a line with the totals, then one line for every wrong row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.official import decode_function_calls
from agentcompass_bfcl.subsets import Rule, subset_named

type Json = Any  # a parsed JSON value

_WRONG_FORMAT = "ast_decoder:decoder_wrong_output_format"


def score_file_name(subset: str) -> str:
    """Name the file that holds a subset's score."""
    return f"BFCL_v4_{subset}_score.json"


def score_records(model: str, rows: Sequence[tuple[Entry, AttemptRecord]]) -> Iterator[dict[str, Json]]:
    """Give the records of one subset's score file; every row has a verdict.

    Keys and their order are upstream's. ``error`` holds our record of the checker's words, joined and shortened, and
    the decoded calls are there where the output is a list of calls.
    """
    correct = sum(record.verdict == "hit" for _, record in rows)
    yield {"accuracy": correct / len(rows), "correct_count": correct, "total_count": len(rows)}
    for entry, record in rows:
        if record.verdict == "miss":
            yield _wrong(model, entry, record)


def _wrong(model: str, entry: Entry, record: AttemptRecord) -> dict[str, Json]:
    head = {"id": entry.id, "model_name": model, "test_category": entry.subset, "valid": False}
    error = {"error": [record.detail], "error_type": record.error_type}
    prompt = {"id": entry.id, "question": [entry.messages()], "function": entry.functions()}
    decoded = _decoded(record.output)
    if subset_named(entry.subset).rule is not Rule.AST:
        return {**head, "prompt": prompt, "model_result": record.output, "decoded_result": decoded, **error}
    outputs = {"model_result_raw": record.output} | ({} if decoded is None else {"model_result_decoded": decoded})
    if record.error_type == _WRONG_FORMAT:
        outputs = {name: str(value) for name, value in outputs.items()}
    return {**head, **error, "prompt": prompt, **outputs, "possible_answer": entry.reference_answers()}


def _decoded(output: Json) -> list[dict[str, Json]] | None:
    if not isinstance(output, list):
        return None
    try:
        return decode_function_calls(output)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None
