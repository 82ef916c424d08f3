"""Odd outputs: what models say, spoiled in every way that models have shown, and nonsense."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.reference import accepted_calls, tool_name
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, subset_named
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value
type Arguments = dict[str, Json]

# fmt: off
SOURCES = {
    Language.JAVA: [
        "new HashMap<", "String, Object>() {{ ", "<>()", "new ArrayList<>", "(Arrays.asList(", "() {{ ", "add(", "));",
        'put("a", 1);', "new int[]{", "new ", "{", "}", "}}", "(", ")", " ", "\n", ",", '"', "'c'", "1", "2L", "3.5f",
        "true", "null", "-", "9" * 30, "\u00e4",
    ],
    Language.JAVASCRIPT: [
        "[", "]", "[[", "]]", "],[", "], [", "{", "}", "new Array(", ")", "a:", '"b": ', ":", ",", ", ", " ", "\t",
        "\n", "'x'", '"y"', "1", "2.5", "3n", "true", "null", "undefined", "() => 1", "9" * 30, "\u00e4",
    ],
}
EXPRESSIONS = [
    "__import__('os').environ.setdefault('A', 'y') + ''", "__import__('os').system('true')", "1+exit()", "eval('1')+1",
    "open('x', 'w')", "().__class__.__base__.__subclasses__()[0] + 1", "(lambda: 1)()", "lambda x: x+1", "1 / 0",
    "[i for i in x]", "9**9**9", "1 << 70000", "[0] * 400000", "'a' * 2000000", "'%9999999d' % 1", "1 + 'a'", "2 ** -1",
    "--1", "-x", "not x", "f'{x}'", "b'x'", "...", "a.b.c", "a[0]", "a[1:2]", "g(y=1)", "g()", "(1, 2)", "{1, 2}",
    "{**a}", "*a", "True", "none", "None", "1j", "1e999", "0x_f", "9" * 5000, "x := 1", "1 if a else 2", "'\\ud800'",
    "'\\N{DASH}'", "1+2*3", "'a'+'b'", "[1]+[2]", "7//2-3%2", "~5&3|1^8>>1",
]
# fmt: on
NAMES = ["", "f", "a.b", "a_b", "print", "__import__", "\u00e4", "\ud800", "x" * 70]
CHARACTERS = "[]{}()\"'`,:;.=*+-/\\ \t\n0123456789abcxyzNTF\u00e4\u2028\ud800\U0001f600"


class Outputs:
    """Makes outputs, one after another, the same ones for the same random numbers."""

    def __init__(self, dataset: Dataset, rng: random.Random) -> None:
        self._dataset = dataset
        self._rng = rng
        self._calls: dict[str, list[tuple[str, str]]] = {}

    def next(self) -> tuple[Entry, Mode, Json]:
        """Choose a row and a mode, and make something that a model might have said."""
        rng = self._rng
        entry = rng.choice(self._dataset.rows[rng.choice(SINGLE_TURN_SUBSETS)])
        mode = Mode.PROMPT if rng.random() < 0.2 else Mode.FC
        if rng.random() < 0.04:
            return entry, mode, self._anything(3)
        language = subset_named(entry.subset).language
        calls = [(name, json.loads(arguments)) for name, arguments in self._reference(entry)]
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
            self._spoil(calls, language)
        if mode is Mode.PROMPT:
            return entry, mode, self._edited(self._as_text(calls, language), 0.4)
        return entry, mode, self._as_calls(calls)

    def _reference(self, entry: Entry) -> list[tuple[str, str]]:
        found = self._calls.get(entry.id)
        if found is None:
            found = [
                (call.name, json.dumps({argument.name: argument.value for argument in call.arguments}))
                if subset_named(entry.subset).language is Language.PYTHON
                else (call.name, call.written()[1])
                for call in accepted_calls(entry)
            ] or [
                (document["name"], json.dumps(dict.fromkeys(document["parameters"]["properties"], "x")))
                for document in entry.functions()[:1]
            ]
            self._calls[entry.id] = found
        return found

    def _spoil(self, calls: list[tuple[str, Arguments]], language: Language) -> None:
        rng = self._rng
        if not calls:
            calls.append((rng.choice(NAMES), {"x": self._anything(2)}))
            return
        place = rng.randrange(len(calls))
        name, arguments = calls[place]
        match rng.randrange(12):
            case 0:
                calls[place] = (rng.choice((*NAMES, name.upper(), name + "_", name.replace("_", "."))), arguments)
            case 1:
                calls.append(rng.choice(calls))
            case 2:
                del calls[place]
            case 3:
                rng.shuffle(calls)
            case 4:
                arguments[rng.choice(NAMES)] = self._anything(2)
            case 5 if arguments:
                del arguments[rng.choice(list(arguments))]
            case _ if arguments:
                key = rng.choice(list(arguments))
                arguments[key] = self._spoiled_value(arguments[key], language)

    def _spoiled_value(self, value: Json, language: Language) -> Json:
        rng = self._rng
        if rng.random() < 0.2:
            return self._anything(2)
        if language is not Language.PYTHON and rng.random() < 0.6:
            return self._source(language) if rng.random() < 0.6 else self._edited(str(value), 1.0)
        match value:
            case bool():
                return rng.choice((not value, int(value), str(value), None))
            case int() | float():
                factor = 0.5 if isinstance(value, float) else 10 ** rng.choice((1, 1, 1, 20, 309))
                return rng.choice((value + 1, -value, str(value), value * factor, value // 2, math.nan, -math.inf))
            case str():
                return rng.choice((value.upper(), f" {value}.", value.replace(" ", "-"), self._edited(value, 1.0)))
            case list() if value:
                place = rng.randrange(len(value))
                spoiled = self._spoiled_value(value[place], language)
                return rng.choice(
                    (value[::-1], value * 2, [value], value[1:], [*value[:place], spoiled, *value[place + 1 :]])
                )
            case dict() if value:
                key = rng.choice(list(value))
                return rng.choice(
                    ({**value, key: self._spoiled_value(value[key], language)}, {**value, "x": 1}, [value], {})
                )
            case _:
                return self._anything(2)

    def _source(self, language: Language) -> str:
        rng = self._rng
        tokens = SOURCES[language]
        pieces = [rng.choice(tokens) for _ in range(rng.randint(1, 14))]
        if rng.random() < 0.05:  # what makes a regular expression run away; each costs the time limit
            pieces.insert(rng.randint(0, len(pieces)), rng.choice(tokens) * rng.randint(10, 400))
        return "".join(pieces)

    def _edited(self, text: str, probability: float) -> str:
        rng = self._rng
        while rng.random() < probability:
            probability /= 2
            at, length = rng.randint(0, len(text)), rng.choice((0, 1, 1, 3, 10))
            inserted = rng.choice(CHARACTERS) * rng.choice((0, 1, 1, 1, 2, 30))
            text = text[:at] + rng.choice((inserted, text[at : at + length] * 2)) + text[at + length :]
        return text * rng.randint(50, 5000) if rng.random() < 0.0005 else text

    def _anything(self, depth: int) -> Json:
        rng = self._rng
        kind = rng.randrange(9 if depth else 6)
        match kind:
            case 0:
                return rng.choice((None, True, False, 0, 1, -1, 0.5, math.inf, math.nan, 10**309, "", [], {}))
            case 1:
                return rng.randint(-(10**6), 10**6)
            case 2:
                return rng.random() * 10 ** rng.randint(-5, 20)
            case 3 | 4 | 5:
                return "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(0, 12)))
            case 6 | 7:
                return [self._anything(depth - 1) for _ in range(rng.randint(0, 3))]
            case _:
                return {rng.choice(NAMES): self._anything(depth - 1) for _ in range(rng.randint(0, 3))}

    def _as_calls(self, calls: list[tuple[str, Arguments]]) -> Json:
        rng = self._rng
        output: list[Json] = [{tool_name(name): json.dumps(arguments)} for name, arguments in calls]
        if not output or rng.random() > 0.15:
            return output
        place = rng.randrange(len(output))
        ((name, text),) = output[place].items()
        odd: tuple[Callable[[], Json], ...] = (
            lambda: {name: json.loads(text)},
            lambda: {name: json.dumps(text)},
            lambda: {name: self._edited(text, 1.0)},
            lambda: {name: text[: rng.randint(0, len(text))]},
            lambda: {name: f"[{text}]"},
            lambda: {name: "[" * rng.choice((90, 5_000)) + text},
            lambda: {name: text, "more": text},
            lambda: {name: self._anything(2)},
            lambda: self._anything(2),
            lambda: {},
        )
        output[place] = rng.choice(odd)()
        return rng.choice((output, output, output, {"calls": output}, [output], json.dumps(output)))

    def _as_text(self, calls: list[tuple[str, Arguments]], language: Language) -> str:
        rng = self._rng
        written = []
        for name, arguments in calls:
            texts = {
                key: repr(value) if language is Language.PYTHON or not isinstance(value, str) else value
                for key, value in arguments.items()
            }
            if texts and rng.random() < 0.15:
                texts[rng.choice(list(texts))] = rng.choice(EXPRESSIONS)
            written.append(f"{name}({', '.join(f'{key}={text}' for key, text in texts.items())})")
        text = ", ".join(written)
        return rng.choice((f"[{text}]", f"[{text}]", text, f"```[{text}]```\n", f"Here: [{text}]"))
