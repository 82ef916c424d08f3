"""Run twelve BFCL rows against an endpoint with the AgentCompass SDK, and read the result.

agentcompass-bfcl serve --port 8000 --mistakes wrong_value=20      # in another terminal, if there is no model
python examples/run_with_sdk.py http://127.0.0.1:8000/v1 my-model
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agentcompass_bfcl import MetricResult, register


def main(base_url: str, model: str) -> None:
    """Run, then print the scores and each subset's counts."""
    register()  # AgentCompass knows third-party benchmarks only once they are imported
    from agentcompass.launcher import run_evaluation

    outcome = run_evaluation(
        benchmark="bfcl",
        harness="bfcl_chat",
        model=model,
        model_base_url=base_url,
        model_params={"temperature": 0, "seed": 42},
        benchmark_params={"draw": "golden", "limit": 12},
        task_concurrency=4,
        enable_analysis=False,
        progress="none",
        log_level="WARNING",
    )
    metrics_json = Path(outcome["paths"]["metrics_json"])
    result = MetricResult.model_validate(json.loads(metrics_json.read_text()))
    for name in ("overall_accuracy", "normalized_single_turn_score"):
        print(f"{name:<30} {result.metrics.get(name, 'no score')}")
    print(f"{'counts':<30} {result.counts}")
    for name, subset in result.details["subsets"].items():
        print(f"{name:<30} {subset['hits']} of {subset['n']}, {subset['errors']} errors")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: python {sys.argv[0]} BASE_URL MODEL")
    main(sys.argv[1], sys.argv[2])
