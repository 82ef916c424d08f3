"""``show``: one sample of a run, from question to verdict."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from agentcompass_bfcl.attempt import AttemptRecord
from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.errors import RunDirError, one_line
from agentcompass_bfcl.json_files import json_text
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.report.escaping import plain_lines
from agentcompass_bfcl.report.side_by_side import decodes_soon, explained, is_json
from agentcompass_bfcl.run_dir import Attempt, read_attempts
from agentcompass_bfcl.run_request import read_request
from agentcompass_bfcl.score import decode_output
from agentcompass_bfcl.sources import Sources, load_sources
from agentcompass_bfcl.task import Mode


def run_command(namespace: argparse.Namespace) -> int:
    """Print question, functions, reply, reference, verdict and the differences in words."""
    sources = load_sources(namespace.wheel)
    sources.dataset.entry(namespace.sample_id)  # an id that does not exist is named as such, whatever the run holds
    attempts = [attempt for attempt in read_attempts(namespace.run_dir) if attempt.sample_id == namespace.sample_id]
    if not attempts:
        raise RunDirError(f"{namespace.run_dir}: {namespace.sample_id} was not run, or not yet")
    mode = read_request(namespace.run_dir).settings.mode
    documents = [describe(attempt, sources, mode) for attempt in attempts]
    if namespace.json:
        print(_json(documents[0] if len(documents) == 1 else documents, namespace.run_dir), end="")
        return 0
    for document in documents:
        print(plain_lines(_text(document)))
    return 0


def describe(attempt: Attempt, sources: Sources, mode: Mode) -> dict[str, Any]:
    """Gather everything about one attempt; ``calls`` is None where the reply cannot be decoded into calls.

    Raises ``ConfigError`` for a Java or JavaScript row in prompt mode without its parsers.
    """
    entry, record = sources.dataset.entry(attempt.sample_id), attempt.record
    output = None if record is None else record.output
    calls = None if record is None else _calls(entry, record, sources.official, mode)
    reference = entry.reference_answers()
    missed = attempt.verdict == "miss" and calls is not None and reference
    differences = explained(entry, calls) if missed and calls is not None else []
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
        "differences": [found.text for found in differences],
    }


def _calls(entry: Entry, record: AttemptRecord, official: Official, mode: Mode) -> Any:
    """Decode a reply as its verdict did; None where it holds no list of calls, has no verdict, or could take long."""
    if record.verdict == "unscored" or (mode is Mode.PROMPT and not decodes_soon(str(record.output))):
        return None
    decoded, failure = decode_output(entry, record.output, official, mode)
    return decoded if failure is None and official.is_call_list(decoded) and is_json(decoded) else None


def _json(document: Any, run_dir: Path) -> str:
    try:
        return json_text(document)
    except RecursionError:
        raise RunDirError(f"{run_dir}: the reply is nested too deeply to be written as JSON") from None


def _text(document: dict[str, Any]) -> str:
    question = "\n".join(f"  {message['role']}: {message['content']}" for message in document["question"])
    verdict = f"{document['verdict']} {one_line(document['type'])}".rstrip()
    blocks = [
        f"{document['id']} (attempt {document['attempt']}): {verdict}",
        f"question\n{question}",
        "functions\n" + "\n".join(f"  {_line(function)}" for function in document["functions"]),
        f"reply\n  {'none' if document['reply'] is None else _line(document['reply'])}",
    ]
    if document["calls"] and document["calls"] != document["reply"]:
        blocks.append("decoded calls\n" + "\n".join(f"  {_line(call)}" for call in document["calls"]))
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
