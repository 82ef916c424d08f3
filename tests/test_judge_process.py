from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcompass_bfcl.bounded import Judge
from agentcompass_bfcl.dataset import Dataset, Entry
from agentcompass_bfcl.errors import ConfigError
from agentcompass_bfcl.judge_process import JudgeProcess, start_process, worker_command, worker_environment
from agentcompass_bfcl.judge_worker import reply_from, reply_line, request_line
from agentcompass_bfcl.official import Official
from agentcompass_bfcl.reference import accepted_calls, reference_calls
from agentcompass_bfcl.score import Hit, Miss, Unscored, Verdict, score_output
from agentcompass_bfcl.sources import Sources
from agentcompass_bfcl.subsets import SINGLE_TURN_SUBSETS, Language, subset_named
from agentcompass_bfcl.task import Mode
from agentcompass_bfcl.wheel import Wheel
from fresh_python import run_python
from runaways import LIMIT, RUNAWAYS, ends_within, is_running, reference_output, row_with, slow_rows, with_argument

LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into another process through /proc")


@pytest.fixture(scope="module")
def judge(dataset: Dataset, official: Official, wheel: Wheel) -> Iterator[Judge]:
    with Judge(official, wheel.path, limit_seconds=LIMIT) as judge:
        yield judge


def spoiled(entry: Entry, rng: random.Random) -> Any:
    """Spoil the reference answer in one of the ways models do."""
    calls = [(name, json.loads(arguments)) for name, arguments in reference_calls(entry)]
    if not calls:
        return rng.choice([[{"any_name": "{}"}], [{"any_name": "{"}], "no", [], {}, [{"f": None}]])
    name, arguments = rng.choice(calls)
    match rng.randrange(6):
        case 0:
            arguments["a_parameter_too_many"] = 1
        case 1:
            arguments.clear()
        case 2:
            calls.append((name, arguments))
        case 3 if arguments:
            arguments[rng.choice(list(arguments))] = rng.choice(["x" * 60, 17, 1.5, None, [1, "ä\ud800"], {"a": [{}]}])
        case 4:
            return [{name: json.dumps(json.dumps(arguments))}]
        case _:
            return [{f"{name}_": json.dumps(arguments)}]
    return [{name: json.dumps(arguments)} for name, arguments in calls]


def as_text(entry: Entry) -> str:
    """Write the reference answer, or a call where none fits, as a model does in prompt mode."""
    python = subset_named(entry.subset).language is Language.PYTHON
    calls = []
    for call in accepted_calls(entry):
        arguments = json.loads(call.written()[1])
        written = [f"{name}={value!r}" if python else f"{name}={value}" for name, value in arguments.items()]
        calls.append(f"{call.name}({', '.join(written)})")
    return f"[{', '.join(calls) or 'f(x=1)'}]"


def imposter(program: str) -> JudgeProcess:
    """Start something else where a judge process should be."""
    command = [sys.executable, "-S", "-c", f"import os, sys, time; {program}"]
    return JudgeProcess(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("time.sleep(60)", "not ready within 0.5 s"),
        ("os.close(1); time.sleep(60)", "it did not start: it closed its pipe"),
        ("print('one'); print('no module')", "it did not start: no module"),
        ("os._exit(3)", "it did not start: it ended with status 3"),
        ("os._exit(12)", "it did not start: it took too much memory"),  # ENOMEM
        ("os.kill(os.getpid(), 9)", "it did not start: it was ended by SIGKILL"),
    ],
)
def test_a_process_that_gets_not_ready_is_told_with_its_last_words(program: str, expected: str) -> None:
    process = imposter(program)
    try:
        with pytest.raises(OSError, match=f"^{re.escape(expected)}$"):
            process.wait_until_ready(0.5 if "not ready" in expected else 30)
    finally:
        process.end()
    assert not is_running(process.pid)


@pytest.mark.parametrize("mode", Mode)
def test_the_process_judges_as_this_one_does_on_ordinary_rows_of_all_subsets(
    mode: Mode,
    dataset: Dataset,
    official: Official,
    wheel: Wheel,
) -> None:
    rng = random.Random(5)  # noqa: S311 - examples, not secrets
    process = JudgeProcess(start_process(worker_command(wheel.path, LIMIT, sys.path)))
    process.wait_until_ready(30)
    kinds: set[type[Verdict]] = set()
    for number in range(390):
        rows = dataset.rows[SINGLE_TURN_SUBSETS[number % len(SINGLE_TURN_SUBSETS)]]
        entry = rng.choice(rows)
        output: Any = reference_output(entry) if rng.random() < 0.5 else spoiled(entry, rng)
        if mode is Mode.PROMPT:
            text = as_text(entry)
            output = text if rng.random() < 0.5 else text.replace(rng.choice(text), rng.choice(["", "(", "7", "*"]), 1)
        reply = process.ask(request_line(number, entry, json.dumps(output), mode), LIMIT)
        here = score_output(entry, output, official, mode)
        assert reply_from(reply, number) == here
        kinds.add(type(here))
    process.end()
    assert {Hit, Miss} <= kinds


def test_one_process_serves_many_rows_and_close_ends_it(dataset: Dataset, official: Official, wheel: Wheel) -> None:
    sources = Sources(dataset, official)
    with Judge(sources.official, wheel.path) as judge:
        easy = dataset.rows["simple_python"][0]
        assert judge.verdict(easy, reference_output(easy)) == Hit()
        assert judge.process_id is None
        verdicts: set[Verdict] = set()
        ids: set[int | None] = set()
        for row in slow_rows(dataset):
            verdicts.add(judge.verdict(row, reference_output(row)))
            ids.add(judge.process_id)
        assert verdicts == {Hit()}
        (process_id,) = ids
        assert process_id is not None
        assert is_running(process_id)
    assert not is_running(process_id)
    assert judge.process_id is None


def test_a_judge_that_is_forgotten_takes_its_process_along(dataset: Dataset, official: Official, wheel: Wheel) -> None:
    judge = Judge(official, wheel.path)
    row = slow_rows(dataset)[0]
    assert judge.verdict(row, reference_output(row)) == Hit()
    process_id = judge.process_id
    assert process_id is not None
    del judge
    assert ends_within(process_id, 5)


def test_threads_share_a_judge(judge: Judge, dataset: Dataset) -> None:
    rows = slow_rows(dataset)
    verdicts: list[Verdict] = []

    def work() -> None:
        verdicts.extend(judge.verdict(row, reference_output(row)) for row in rows)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [Hit()] * (4 * len(rows))


async def test_a_runaway_inside_an_event_loop_costs_the_limit_and_no_more(judge: Judge, dataset: Dataset) -> None:
    _, subset, kind, source = RUNAWAYS[0]
    entry, name = row_with(dataset, subset, kind)
    judge.verdict(slow_rows(dataset)[0], reference_output(slow_rows(dataset)[0]))  # starts the process
    begin = time.monotonic()
    assert isinstance(judge.verdict(entry, with_argument(entry, name, json.dumps(source))), Unscored)
    assert LIMIT <= time.monotonic() - begin < LIMIT + 1


def test_an_interrupt_while_a_row_is_judged_leaves_no_answer_for_the_next(judge: Judge, dataset: Dataset) -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    _, subset, kind, source = RUNAWAYS[0]
    entry, name = row_with(dataset, subset, kind)
    slow = slow_rows(dataset)[0]
    judge.verdict(slow, reference_output(slow))
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            judge.verdict(entry, with_argument(entry, name, json.dumps(source)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert judge.process_id is None
    assert judge.verdict(slow, reference_output(slow)) == Hit()


# The start of a Python program that judges one ordinary row, then may go on; arguments: wheel, sample id.
PROGRAM = """
import json, os, signal, sys, time
from pathlib import Path
from agentcompass_bfcl.bounded import Judge
from agentcompass_bfcl.dataset import read_dataset
from agentcompass_bfcl.official import load_official
from agentcompass_bfcl.reference import reference_calls
from agentcompass_bfcl.sources import Sources
from agentcompass_bfcl.wheel import open_wheel

wheel = open_wheel(Path(sys.argv[1]))
sources = Sources(read_dataset(wheel), load_official(wheel))
entry = sources.dataset.entry(sys.argv[2])
output = [{name: arguments} for name, arguments in reference_calls(entry)]
judge = Judge(sources.official, wheel.path, limit_seconds=1.0)
print(type(judge.verdict(entry, output)).__name__, judge.process_id, flush=True)
"""


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in the middle of a runaway"])
def test_the_process_ends_after_its_parent_was_killed(
    busy: bool, dataset: Dataset, wheel: Wheel, tmp_path: Path
) -> None:
    _, subset, kind, source = RUNAWAYS[0]
    entry, name = row_with(dataset, subset, kind)
    killer = json.dumps([entry.id, with_argument(entry, name, json.dumps(source))])
    rest = "entry, output = json.loads(sys.argv[3])\n"
    rest += "import threading\nthreading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
    rest += "judge.verdict(sources.dataset.entry(entry), output)\n" if busy else "time.sleep(60)\n"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + rest, wheel.path, slow_rows(dataset)[0].id, killer],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    kind_of_verdict, process_id = done.stdout.split()
    assert kind_of_verdict == b"Hit"
    assert ends_within(int(process_id), LIMIT + 5)


def test_a_forked_process_uses_a_judge_process_of_its_own(dataset: Dataset, wheel: Wheel, tmp_path: Path) -> None:
    rest = """
first = judge.process_id
child = os.fork()
print(type(judge.verdict(entry, output)).__name__, judge.process_id == first, flush=True)
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(type(judge.verdict(entry, output)).__name__, judge.process_id == first)
"""
    lines = run_python(PROGRAM + rest, str(wheel.path), slow_rows(dataset)[0].id, cwd=tmp_path).splitlines()
    assert sorted(lines[1:]) == ["Hit False", "Hit True", "Hit True"]
    assert ends_within(int(lines[0].split()[1]), 5)


def test_the_process_finds_the_package_where_its_parent_found_it(
    dataset: Dataset, wheel: Wheel, tmp_path: Path
) -> None:
    package = Path(sys.modules["agentcompass_bfcl"].__file__ or "").parent
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "agentcompass_bfcl").symlink_to(package)
    program = f"import sys; sys.path.insert(0, 'elsewhere'){PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program, wheel.path, slow_rows(dataset)[0].id],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={},
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(b"Hit ")


def test_no_secret_is_among_the_variables_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HF_TOKEN", "hf-secret")
    process = start_process([sys.executable, "-I", "-c", "import os; print(dict(os.environ), os.getcwd())"])
    printed, _ = process.communicate(timeout=60)
    assert b"KEY" not in printed
    assert b"TOKEN" not in printed
    assert b"secret" not in printed
    assert printed.endswith(b" /\n")
    assert worker_environment({"PATH": "/bin", "MY_API_KEY": "x", "HOME": "/home/me"}) == {"PATH": "/bin"}


@LINUX
def test_a_judge_process_has_bounds_and_no_secret_even_when_its_parent_has_them(
    judge: Judge, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    judge.close()
    row = slow_rows(dataset)[0]
    judge.verdict(row, reference_output(row))
    process_id = judge.process_id
    assert process_id is not None
    environ = Path(f"/proc/{process_id}/environ").read_bytes()
    assert not [word for word in (b"KEY", b"TOKEN", b"SECRET") if word in environ]
    assert Path(f"/proc/{process_id}/cwd").readlink() == Path("/")
    for kind, bound in ((resource.RLIMIT_AS, 2 * 1024**3), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        _, hard = resource.prlimit(process_id, kind)
        assert 0 <= hard <= bound  # -1 would be no bound


def pretender(script: str, says_ready: bool = True) -> Callable[[Sequence[str]], subprocess.Popen[bytes]]:
    """Start a program that takes the judge process's place: it reads a request, ``number``, then does as it likes."""
    head = "import json, os, signal, sys, time\nsay = lambda text: os.write(1, text.encode())\n"
    head += "answer = lambda *reply: say(json.dumps(reply) + '\\n')\n"
    head += "say('a warning\\nready\\n'); number = json.loads(sys.stdin.readline())[0]\n" if says_ready else ""
    return lambda _command: start_process([sys.executable, "-I", "-c", head + script])


BAD_PROCESSES = [
    ("dies at once", "os._exit(3)", "it ended with status 3"),
    ("dies of a signal", "os.kill(os.getpid(), signal.SIGSEGV)", "it was ended by SIGSEGV"),
    # Its lines may come one by one or all at once, and are no reply either way.
    ("prints a traceback", "x = bytes(10**15)", "the judge process broke off: "),
    ("stops in the middle of a line", "say(f'[{number}, \"hit\"'); os._exit(0)", "it ended with status 0"),
    ("answers no JSON", "say('hit\\n')", "not the reply"),
    ("answers broken JSON", "say(f'[{number}, \\n')", "Expecting value"),
    ("answers another request", "answer(number + 1, 'hit')", "not the reply"),
    ("answers True for a number", "answer(True, 'hit')", "not the reply"),
    ("answers twice", "say(f'[{number}, \"hit\"]\\n' * 2)", "more than the line"),
    ("answers an unknown kind", "answer(number, 'maybe')", "not a verdict"),
    ("answers a miss without a word", "answer(number, 'miss')", "not a verdict"),
    ("answers a number for a word", "answer(number, 'miss', 1, '')", "not a verdict"),
    ("answers a hit and more", "answer(number, 'hit', 'x', 'y')", "not a verdict"),
    ("never stops talking", "while True: say('x' * 10_000)", "more than the line"),
    ("answers bytes that are no text", "os.write(1, b'\\xff\\xfe\\n')", "not the reply"),
]


@pytest.mark.parametrize(("script", "words"), [case[1:] for case in BAD_PROCESSES], ids=[c[0] for c in BAD_PROCESSES])
def test_whatever_is_no_verdict_leaves_the_row_unscored(
    script: str, words: str, dataset: Dataset, official: Official, wheel: Wheel
) -> None:
    row = slow_rows(dataset)[0]
    with Judge(official, wheel.path, spawn=pretender(script)) as judge:
        verdict = judge.verdict(row, reference_output(row))
        assert judge.process_id is None
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "checker_died"
    assert words in verdict.detail


def test_what_prompt_mode_lacks_in_the_process_is_the_callers_affair(
    dataset: Dataset, official: Official, wheel: Wheel
) -> None:
    script = "answer(number, 'refused', 'prompt mode needs the package tree-sitter'); time.sleep(60)"
    with Judge(official, wheel.path, spawn=pretender(script)) as judge:
        with pytest.raises(ConfigError, match="needs the package tree-sitter"):
            judge.verdict(dataset.rows["simple_java"][0], "[f(x=1)]", Mode.PROMPT)
        assert judge.process_id is not None


def test_a_process_that_never_answers_or_never_reads_costs_the_limit(
    dataset: Dataset, official: Official, wheel: Wheel
) -> None:
    row = slow_rows(dataset)[0]
    large = [{"f": " " * 1_000_000}]  # more than a pipe holds
    for script, output in (("time.sleep(60)", reference_output(row)), ("say('ready\\n'); time.sleep(60)", large)):
        begin = time.monotonic()
        spawn = pretender(script, says_ready=output is not large)
        with Judge(official, wheel.path, limit_seconds=0.2, spawn=spawn) as judge:
            assert judge.verdict(row, output) == Unscored("time_limit", "no verdict within 0.2 s")
        assert time.monotonic() - begin < 5


def test_a_process_that_cannot_start_says_why(
    dataset: Dataset, official: Official, wheel: Wheel, tmp_path: Path
) -> None:
    row = slow_rows(dataset)[0]
    with Judge(official, tmp_path / "gone.whl") as judge:
        verdict = judge.verdict(row, reference_output(row))
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "checker_died"
    assert "DatasetError" in verdict.detail
    assert "gone.whl: no such file" in verdict.detail

    def nothing_there(_command: Sequence[str]) -> subprocess.Popen[bytes]:
        return start_process([str(tmp_path / "no-python")])

    with Judge(official, wheel.path, spawn=nothing_there) as judge:
        verdict = judge.verdict(row, reference_output(row))
    assert isinstance(verdict, Unscored)
    assert "No such file" in verdict.detail


VERDICTS = st.one_of(st.just(Hit()), st.builds(Miss, st.text(), st.text()), st.builds(Unscored, st.text(), st.text()))


@given(number=st.integers(), verdict=VERDICTS)
def test_a_verdict_survives_the_way_through_the_pipe(number: int, verdict: Verdict) -> None:
    line = reply_line(number, verdict)
    assert line.count(b"\n") == 1
    assert reply_from(line, number) == verdict
