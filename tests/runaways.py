"""What is known to run away, and the rows to try it on."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from agentcompass_bfcl.bounded import can_run_away
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.reference import UNPASSABLE, reference_calls
from agentcompass_bfcl.task import Mode

LIMIT = 1.0


def reference_output(entry: Entry) -> list[dict[str, str]]:
    return [{name: arguments} for name, arguments in reference_calls(entry)]


def with_argument(entry: Entry, name: str, text: str) -> list[dict[str, str]]:
    """Give the reference answer with the JSON of one argument of its first call replaced, as a model may write it."""
    (tool, arguments), *others = reference_calls(entry)
    rest = {key: value for key, value in json.loads(arguments).items() if key != name}
    written = f"{json.dumps(rest).removesuffix('}')}{', ' if rest else ''}{json.dumps(name)}: {text}}}"
    return [{tool: written}, *({other: call} for other, call in others)]


def row_with(dataset: Dataset, subset: str, type_name: str) -> tuple[Entry, str]:
    """Find a row whose first reference call gives a parameter of this documented type, the first it is checked for."""
    for entry in dataset.rows[subset]:
        given_names = json.loads(reference_calls(entry)[0][1])
        for name, schema in entry.functions()[0]["parameters"]["properties"].items():
            if schema["type"] == type_name and name in given_names:
                return entry, name
    raise LookupError(f"no row of {subset} has a parameter of type {type_name}")


def slow_rows(dataset: Dataset) -> list[Entry]:
    """The rows whose right answer needs the judge process."""
    rows = [*dataset.rows["simple_java"], *dataset.rows["simple_javascript"]]
    return [row for row in rows if row.id not in UNPASSABLE and can_run_away(row, reference_output(row), Mode.FC)]


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process_id}/stat")  # orphans that init has not collected yet do not run
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def ends_within(process_id: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_running(process_id):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# What is known to run away or to break the checker: (name, subset, type of the parameter, argument as JSON).
RUNAWAYS = [
    ("JavaScript nested arrays", "simple_javascript", "array", "[[" + "1],[" * 30),
    ("JavaScript nested empty arrays", "simple_javascript", "array", "[[" + "],[" * 60),
    ("JavaScript new Array", "simple_javascript", "array", "new Array([" + "],[" * 60),
    ("JavaScript arrays in a dict", "simple_javascript", "dict", "{a:[[" + "],[" * 60 + "]}"),
    ("Java HashMap and blanks", "simple_java", "HashMap", "new HashMap<>() { " + " " * 400),
    ("Java ArrayList and blanks", "simple_java", "ArrayList", "new ArrayList<>() {{" + " " * 3000),
]
