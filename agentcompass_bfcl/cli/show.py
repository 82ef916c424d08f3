"""``show``: one sample of a run, from question to verdict."""

from __future__ import annotations

import argparse
import json
from typing import Any

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import RunDirError
from agentcompass_bfcl.explain import differences
from agentcompass_bfcl.official import decode_function_calls
from agentcompass_bfcl.run_dir import Attempt, read_attempts
from agentcompass_bfcl.sources import load_sources


def run_command(namespace: argparse.Namespace) -> int:
    """Print question, functions, reply, reference, verdict and the differences in words."""
    dataset = load_sources(namespace.wheel).dataset
    dataset.entry(namespace.sample_id)  # an id that does not exist is named as such, whatever the run holds
    attempts = [attempt for attempt in read_attempts(namespace.run_dir) if attempt.sample_id == namespace.sample_id]
    if not attempts:
        raise RunDirError(f"{namespace.run_dir}: {namespace.sample_id} was not run, or not yet")
    documents = [describe(attempt, dataset) for attempt in attempts]
    if namespace.json:
        print(json.dumps(documents[0] if len(documents) == 1 else documents, indent=2, ensure_ascii=False))
        return 0
    for document in documents:
        print(_text(document))
    return 0


def describe(attempt: Attempt, dataset: Dataset) -> dict[str, Any]:
    """Gather everything about one attempt; ``calls`` is None where the reply cannot be decoded into calls."""
    entry, record = dataset.entry(attempt.sample_id), attempt.record
    output = None if record is None else record.output
    try:
        calls = decode_function_calls(output) if isinstance(output, list) else None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        calls = None
    reference = entry.reference_answers()
    missed = attempt.verdict == "miss" and calls is not None and reference
    return {
        "id": entry.id,
        "subset": entry.subset,
        "attempt": attempt.number,
        "question": entry.messages(),
        "functions": entry.functions(),
        "reply": output,
        "calls": calls,
        "reference": reference,
        "verdict": attempt.verdict,
        "type": attempt.kind,
        "detail": attempt.problem or ("" if record is None else record.detail),
        "differences": differences(calls, reference) if missed and calls is not None else [],
    }


def _text(document: dict[str, Any]) -> str:
    question = "\n".join(f"  {message['role']}: {message['content']}" for message in document["question"])
    blocks = [
        f"{document['id']} (attempt {document['attempt']}): {document['verdict']} {document['type']}".rstrip(),
        f"question\n{question}",
        "functions\n" + "\n".join(f"  {_line(function)}" for function in document["functions"]),
        f"reply\n  {'none' if document['reply'] is None else _line(document['reply'])}",
    ]
    if document["reference"]:
        blocks.append("accepted\n" + "\n".join(f"  {_line(answer)}" for answer in document["reference"]))
    if document["detail"]:
        heading = "why there is no verdict" if document["verdict"] == "unscored" else "the official checker says"
        blocks.append(f"{heading}\n  {document['detail']}")
    if document["differences"]:
        blocks.append("what differs\n" + "\n".join(f"  {difference}" for difference in document["differences"]))
    return "\n\n".join(blocks) + "\n"


def _line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
