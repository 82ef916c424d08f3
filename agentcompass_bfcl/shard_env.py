"""Which shard this process is to run, as the cluster that started it says."""

from __future__ import annotations

from collections.abc import Mapping

from agentcompass_bfcl.errors import ShardError
from agentcompass_bfcl.shard import Shard

_INDEX, _COUNT = "BFCL_SHARD_INDEX", "BFCL_SHARD_COUNT"
_SLURM_ID, _SLURM_COUNT = "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"
_SLURM_MIN, _SLURM_MAX, _SLURM_STEP = "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_STEP"
_KUBERNETES_INDEX = "JOB_COMPLETION_INDEX"


def shard_from_environment(environ: Mapping[str, str]) -> Shard:
    """Take index and count from ``BFCL_SHARD_INDEX`` and ``BFCL_SHARD_COUNT``, a Slurm array, or a Kubernetes job.

    The first of these that is there counts. An indexed job of Kubernetes tells a pod its index only: its count goes
    into ``BFCL_SHARD_COUNT``, in the job's own file. Raises ``ShardError`` that says which variable is missing or
    wrong, and for a Slurm array with holes or of another size than ``BFCL_SHARD_COUNT``, as when some tasks of an array
    are submitted again: such a task cannot tell which shard it was.
    """
    if _INDEX in environ:
        return Shard(_number(environ, _INDEX), _number(environ, _COUNT))
    if _SLURM_ID in environ:
        return _of_array(environ)
    if _KUBERNETES_INDEX in environ:
        return Shard(_number(environ, _KUBERNETES_INDEX), _number(environ, _COUNT))
    if _COUNT in environ:
        raise ShardError(f"--shard auto: {_COUNT} is set, and nothing says which of them this is; set {_INDEX} as well")
    raise ShardError(
        f"--shard auto: no shard in the environment; set {_INDEX} and {_COUNT}, or start as a Slurm array"
        f" or an indexed job of Kubernetes (with {_COUNT} set to its completions)"
    )


def _of_array(environ: Mapping[str, str]) -> Shard:
    task = _number(environ, _SLURM_ID)
    first, step = _number(environ, _SLURM_MIN, 0), _number(environ, _SLURM_STEP, 1)
    if step < 1 or task < first or (task - first) % step:
        raise ShardError(f"{_SLURM_ID}={task} does not fit {_SLURM_MIN}={first} and {_SLURM_STEP}={step}")
    count = _number(environ, _COUNT if _SLURM_COUNT not in environ and _COUNT in environ else _SLURM_COUNT)
    if _COUNT in environ and _number(environ, _COUNT) != count:
        raise ShardError(
            f"--shard auto: {_SLURM_COUNT} is {count} and {_COUNT} is {environ[_COUNT]}; submit the whole array,"
            f" or set {_INDEX} as well to run one shard"
        )
    index = (task - first) // step
    last = _number(environ, _SLURM_MAX, first + (count - 1) * step)
    if index >= count or last != first + (count - 1) * step:
        raise ShardError(
            f"--shard auto: a Slurm array of {count} tasks from {first} to {max(task, last)} in steps of {step};"
            f" an array with holes leaves rows out, so submit one without, or set {_INDEX} and {_COUNT}"
        )
    return Shard(index, count)


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name)
    if text is None and default is not None:
        return default
    if text is None:
        raise ShardError(f"--shard auto: {name} is not set")
    if not (text.isascii() and text.isdigit()):
        raise ShardError(f"--shard auto: {name} is {text[:40]!a}; a whole number is expected")
    return int(text)
