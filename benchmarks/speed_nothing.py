"""A benchmark and a harness that do nothing, for AgentCompass: what is left is what the host itself costs a sample."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any

from agentcompass.runtime import (
    BENCHMARKS,
    HARNESSES,
    AssistantContent,
    BaseBenchmark,
    BaseHarness,
    BenchmarkPlan,
    EnvironmentSession,
    EnvironmentSpec,
    ExecutionPlan,
    HarnessPlan,
    ModelSpec,
    PreparedTask,
    RunRequest,
    RunResult,
    StepInfo,
    TaskInput,
    TaskOutput,
    TaskSpec,
    TaskStatus,
    Trajectory,
    TrajMetric,
)

_times: list[datetime] = []


def span() -> float:
    """Give the seconds between the first answer's begin and the last one's end in this process."""
    return (max(_times) - min(_times)).total_seconds()


@BENCHMARKS.register()
class NothingBenchmark(BaseBenchmark):  # type: ignore[misc] # the host has no types
    """As many tasks as asked for, all alike, all right."""

    id = "bfcl_floor"
    description = "Tasks that do nothing: the floor of the speed suite."
    parallel_attempts_safe = True
    collect_artifacts = False

    def load_tasks(self, req: RunRequest) -> list[TaskSpec]:
        """Make the tasks."""
        rows = int(req.benchmark.params["rows"])
        return [TaskSpec(f"nothing_{row}", "nothing", "nothing", "nothing") for row in range(rows)]

    async def prepare_task(
        self, task: TaskSpec, env: EnvironmentSession, req: RunRequest, plan: BenchmarkPlan
    ) -> PreparedTask:
        """Prepare the least there is."""
        return PreparedTask(task.task_id, task.category, task.ground_truth, TaskInput(prompt=""), TaskOutput())

    async def evaluate(
        self,
        task: TaskSpec,
        prepared: PreparedTask,
        result: RunResult,
        req: RunRequest,
        plan: ExecutionPlan,
        env: EnvironmentSession | None = None,
    ) -> RunResult:
        """Call everything right."""
        return replace(result, status=TaskStatus.COMPLETED, metrics={"correct": True})


@HARNESSES.register()
class NothingHarness(BaseHarness):  # type: ignore[misc] # as above
    """Answers by itself."""

    id = "bfcl_floor"
    description = "Answers without asking anybody: the floor of the speed suite."

    def supports(self, environment: EnvironmentSpec, model: ModelSpec) -> bool:
        """Work anywhere."""
        return True

    async def start_session(self, env: EnvironmentSession, req: RunRequest, plan: HarnessPlan) -> Any:
        """Need no session."""

    async def close_session(self, session: Any) -> None:
        """Close nothing."""

    async def run_task(self, session: Any, prepared: PreparedTask, req: RunRequest, plan: HarnessPlan) -> RunResult:
        """Wait as long as a model would, and answer."""
        begun = datetime.now()  # noqa: DTZ005 - the host keeps local times without a zone, and compares them
        latency = float(req.harness.params.get("latency") or 0.0)
        if latency:
            await asyncio.sleep(latency)
        ended = datetime.now()  # noqa: DTZ005 - as above
        _times.extend((begun, ended))
        said = AssistantContent(content="nothing")
        step = StepInfo(step_id=0, user_content="", assistant_content=said, metric=TrajMetric())
        trajectory = Trajectory(steps=[step], started_at=begun, finished_at=ended)
        return RunResult(prepared.task_id, TaskStatus.COMPLETED, final_answer="nothing", trajectory=trajectory)
