"""Verdicts by upstream's own functions in the official evaluator's order, apart from how this package calls them."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from typing import Any

from agentcompass_bfcl.dataset import Entry
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.score import Hit, Miss, Verdict
from agentcompass_bfcl.subsets import Rule, subset_named
from agentcompass_bfcl.task import Mode

type Json = Any  # a parsed JSON value


def by_official_steps(official: Official, entry: Entry, output: Json, mode: Mode) -> str:
    """Do what the official evaluator does with one result: "hit", "miss <error type>", or "raises <class>"."""
    utils, enums, handler = official._utils, official._enums, official._handler
    subset = subset_named(entry.subset)
    relevance = subset.rule is not Rule.AST
    try:
        if mode is Mode.PROMPT:
            form = enums.ReturnFormat.PYTHON if relevance else enums.ReturnFormat(subset.language.value)
            decoded = handler.default_decode_ast_prompting(output, form, False)
        else:
            decoded = []
            for call in output:
                name = list(call.keys())[0]  # noqa: RUF015 - as upstream: an IndexError where there is none
                decoded.append({name: json.loads(call[name])})
    except Exception:  # noqa: BLE001 - upstream's rule: whatever its decoder raises on is no call
        decoded = None
        if not relevance:
            return "miss ast_decoder:decoder_failed"
    if relevance:
        called = decoded is not None and not utils.is_empty_output(decoded)
        if "irrelevance" in entry.subset:
            return "miss irrelevance_error:decoder_success" if called else "hit"
        return "hit" if called else "miss relevance_error:decoder_failed"
    if not utils.is_function_calling_format_output(decoded):
        return "miss ast_decoder:decoder_wrong_output_format"
    language = enums.Language(subset.language.value)
    model = "fc" if mode is Mode.FC else "prompt"  # two names of the model table that official.py stands in for
    try:
        found = official._checker.ast_checker(
            entry.functions(), decoded, entry.reference_answers(), language, entry.subset, model
        )
    except Exception as error:  # noqa: BLE001 - upstream's command line ends here
        return f"raises {type(error).__name__}"
    return "hit" if found["valid"] else f"miss {found['error_type']}"


def in_the_same_words(verdict: Verdict) -> str | None:
    """Say a verdict in the words of ``by_official_steps``; None when a limit kept it from being one."""
    if isinstance(verdict, Hit):
        return "hit"
    if isinstance(verdict, Miss):
        return f"miss {verdict.error_type}"
    if verdict.reason == "checker_raised":
        return f"raises {verdict.detail.partition(':')[0]}"
    return None if verdict.reason in ("time_limit", "output_too_large") else f"unscored {verdict.reason}"


class OfficialJudge:
    """Follows the official steps with a second copy of the code; in a forked process where it may run away."""

    def __init__(self, official: Official, limit_seconds: float) -> None:
        self._official = official
        self._limit_seconds = limit_seconds
        self._context = multiprocessing.get_context("fork")
        self._start()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=self._serve, args=(other, self._pipe), daemon=True)
        self._process.start()
        other.close()

    def _serve(self, pipe: Any, parents_end: Any) -> None:
        parents_end.close()
        while True:
            try:
                entry, output, mode = pipe.recv()
            except EOFError:
                os._exit(0)
            signal.setitimer(signal.ITIMER_REAL, self._limit_seconds + 1)  # ends a runaway that nobody waits for
            pipe.send(by_official_steps(self._official, entry, output, mode))
            signal.setitimer(signal.ITIMER_REAL, 0)

    def verdict(self, entry: Entry, output: Json, mode: Mode, *, here: bool) -> str | None:
        """Judge, in this process or not; None when it takes too long or ends the process."""
        if here:
            return by_official_steps(self._official, entry, output, mode)
        self._pipe.send((entry, output, mode))
        try:
            if self._pipe.poll(self._limit_seconds):
                answer: str = self._pipe.recv()
                return answer
        except EOFError:
            pass
        self.close()
        self._start()
        return None

    def close(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()
