"""Result files of bfcl-eval, found and read line by line, and never written to.

The official generator stores ``result/<model>/{non_live,live}/BFCL_v4_<subset>_result.json``: one JSON object a line,
``{"id", "result", ...}``. ``result`` is what the model gave: a list of calls, or text.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from agentcompass_bfcl.dataset import Dataset
from agentcompass_bfcl.errors import OfficialResultsError
from agentcompass_bfcl.score import Unscored
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS

type Json = Any  # a parsed JSON value

INFERENCE_ERROR = "inference_error"
LONGEST_LINE = 32 * 1024 * 1024  # bytes; parsed it takes up to some 25 times as many
MOST_FAULTS = 1_000  # in one file; whatever has more is no result file, and faults are kept in memory

# bfcl-eval stores a failed request as an answer that begins so, and never tries it again.
_INFERENCE_ERROR_TEXT = "Error during inference:"
_LONGEST_DETAIL = 2_000
_LARGEST_AMOUNT = 1_000_000_000  # tokens, or seconds


@dataclass(frozen=True, slots=True)
class ResultFault:
    """What is wrong with a line of a file; ``line`` is 1-based, None where the whole file is meant."""

    path: Path
    line: int | None
    message: str

    def __str__(self) -> str:
        text = f"{self.path}:{'' if self.line is None else f'{self.line}:'} {self.message}"
        # File names may hold anything, line ends and undecodable bytes among it; this is for a terminal, on one line.
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One sample's stored output, not judged yet. With a ``failure`` there was no answer to store.

    Tokens and latency are None where nobody stored them.
    """

    id: str
    output: Json
    failure: Unscored | None = None
    truncated: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ModelResults:
    """One model's result files. ``model`` is the folder's name, in which upstream writes "/" as "_".

    ``files`` maps single-turn subsets to their files; ``ignored`` are result files of other test categories.
    """

    model: str
    folder: Path
    files: Mapping[str, Path]
    ignored: tuple[Path, ...] = ()
    faults: tuple[ResultFault, ...] = ()


def result_file_name(subset: str) -> str:
    """Name the file that holds a subset's results."""
    return f"BFCL_v4_{subset}_result.json"


_SUBSET_OF_FILE = {result_file_name(subset): subset for subset in SINGLE_TURN_SUBSETS}
_ANY_RESULTS = "BFCL_v4_*_result.json"
_EXAMPLE = f"<model>/non_live/{result_file_name('simple_python')}"
_GROUPS = ("non_live", "live", "multi_turn", "agentic", "format_sensitivity")


def find_results(path: Path) -> tuple[ModelResults, ...]:
    """Find the result files at a path: one file, a model's folder, or a folder of models such as ``result``.

    Models are sorted by folder name; one that has only other test categories has no ``files``. Raises
    ``OfficialResultsError`` when there are no results, or when a file's name is not exactly one of theirs.
    """
    place = Path(os.path.realpath(path))  # Path.resolve() raises RuntimeError for a symlink to itself
    try:
        if place.is_file():
            return (_single_file(place),)
        if not place.exists():
            raise OfficialResultsError(f"{path}: no such file or folder")
        found = tuple(_model_results(folder) for folder in _model_folders(place))
    except OSError as error:
        raise OfficialResultsError(f"{path}: cannot be read ({error.strerror})") from None
    if not any(results.files for results in found):
        raise OfficialResultsError(f"{path}: no single-turn results of bfcl-eval here; expected {_EXAMPLE}")
    return found


def _single_file(place: Path) -> ModelResults:
    subset = _SUBSET_OF_FILE.get(place.name)
    if subset is None:
        raise OfficialResultsError(f"{place}: not named as bfcl-eval names single-turn results; expected {_EXAMPLE}")
    return ModelResults(_model_name(place.parent), place, MappingProxyType({subset: place}))


def _model_folders(place: Path) -> list[Path]:
    """List the models' folders: the place itself, those in it, or those in its ``result`` folder."""
    for parent in (place, place / "result"):
        children = [child for child in sorted(parent.iterdir()) if child.is_dir()] if parent.is_dir() else []
        for candidates in ([parent], children):
            models = [folder for folder in candidates if any(_near(folder))]
            if models:
                return models
    return []


def _near(folder: Path) -> Iterator[Path]:
    """Find result files in a folder and in its groups, also where those are symbolic links."""
    for place in (folder, *(folder / group for group in _GROUPS)):
        yield from place.glob(_ANY_RESULTS)


def _model_name(folder: Path) -> str:
    return folder.parent.name if folder.name in _GROUPS else folder.name


def _model_results(folder: Path) -> ModelResults:
    files: dict[str, Path] = {}
    ignored, faults = [], []
    for path in sorted({*_near(folder), *folder.rglob(_ANY_RESULTS)}):  # upstream takes them at any depth, too
        subset = _SUBSET_OF_FILE.get(path.name)
        if subset is None:
            ignored.append(path)
        elif subset in files:
            faults.append(ResultFault(path, None, f"a second file of {subset}, beside {files[subset]}"))
        else:
            files[subset] = path
    return ModelResults(_model_name(folder), folder, MappingProxyType(files), tuple(ignored), tuple(faults))


def read_rows(
    results: ModelResults, dataset: Dataset, *, official_errors: bool = False
) -> Iterator[StoredRow | ResultFault]:
    """Read every row of a model's files, subsets in sorted order, with what is wrong in between.

    One line is held at a time. The text of a failed request is a failure here, where upstream takes it for an answer,
    a right one on irrelevance rows; with ``official_errors`` so do we. Of a key that stands twice in an object the
    last one counts, as upstream.
    """
    yield from results.faults
    for subset, path in sorted(results.files.items()):
        for item in _read_file(path, subset, dataset):
            yield item if official_errors or isinstance(item, ResultFault) else _without_inference_error(item)


def rows_only(items: Iterable[StoredRow | ResultFault], faults: list[ResultFault]) -> Iterator[StoredRow]:
    """Pass the rows on, and put the faults between them into ``faults``."""
    for item in items:
        if isinstance(item, ResultFault):
            faults.append(item)
        else:
            yield item


def _without_inference_error(row: StoredRow) -> StoredRow:
    if not isinstance(row.output, str) or not row.output.startswith(_INFERENCE_ERROR_TEXT):
        return row
    return replace(row, failure=Unscored(INFERENCE_ERROR, row.output[:_LONGEST_DETAIL]))


def _read_file(path: Path, subset: str, dataset: Dataset) -> Iterator[StoredRow | ResultFault]:
    seen: dict[str, int] = {}
    faults = 0
    try:
        if not path.is_file():  # opening a named pipe would wait for ever
            yield ResultFault(path, None, "not a file that can be read")
            return
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), 1):
                if number == 1 and line and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    yield ResultFault(path, None, "is UTF-16; save it as UTF-8")
                    return
                item = _row(line, number, subset, seen, dataset)
                if isinstance(item, str):
                    yield ResultFault(path, number, item)
                    faults += 1
                elif item is not None:
                    yield item
                if faults == MOST_FAULTS:
                    yield ResultFault(path, None, f"{faults} faulty lines so far; the rest was not read")
                    return
    except OSError as error:
        yield ResultFault(path, None, f"cannot be read ({error.strerror})")
        return
    if not seen and not faults:
        yield ResultFault(path, None, "holds no row")


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Read line by line; None stands for a line that is too long, which is passed over and never held whole."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (more := file.readline(1024 * 1024)) and not more.endswith(b"\n"):
            pass
        yield None


def _row(
    line: bytes | None, number: int, subset: str, seen: dict[str, int], dataset: Dataset
) -> StoredRow | str | None:
    """Read one line: a row, the fault that keeps it from being one, or None for a blank line."""
    if line is None:
        return f"longer than {LONGEST_LINE} bytes"
    if not line.strip():
        return None
    record = _json_object(line)
    if isinstance(record, str):
        return record
    sample_id = record.get("id")
    if not isinstance(sample_id, str):
        return "no key 'id' with text in it"
    entry = dataset.by_id.get(sample_id)
    if entry is None:
        return f"unknown id {sample_id[:80]!a}"
    if entry.subset != subset:
        return f"{sample_id} belongs to {entry.subset}, and this file to {subset}"
    if sample_id in seen:
        return f"{sample_id} stands already in line {seen[sample_id]}"
    seen[sample_id] = number
    if "result" not in record:
        return f"{sample_id} has no key 'result'"
    seconds = _amount(record.get("latency"))
    return StoredRow(
        sample_id,
        record["result"],
        prompt_tokens=_count(record.get("input_token_count")),
        completion_tokens=_count(record.get("output_token_count")),
        latency_ms=None if seconds is None else seconds * 1000,
    )


def _count(value: Json) -> int | None:
    amount = _amount(value)
    return None if amount is None else int(amount)


def _amount(value: Json) -> float | None:
    """Take a number that can be a count or a time; what a file says besides the output spoils no row."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LARGEST_AMOUNT else None


def _json_object(line: bytes) -> dict[str, Json] | str:
    if line.startswith(codecs.BOM_UTF8):
        return "begins with a byte order mark; save the file as UTF-8 without one"
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"not UTF-8 (byte {error.start + 1} of the line)"
    except ValueError as error:  # also for whole numbers of more than 4,300 digits
        return f"not JSON ({error})"
    except RecursionError:
        return "not JSON that can be read (nested too deeply)"
    return record if isinstance(record, dict) else f"a JSON object is expected, not {type(record).__name__}"
