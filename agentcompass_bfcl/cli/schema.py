"""``schema``: the JSON Schema of a document that the commands write for machines."""

from __future__ import annotations

import argparse
import json

from pydantic import BaseModel


def run_command(namespace: argparse.Namespace) -> int:
    """Print the schema, as pydantic derives it from the model the document is written from."""
    print(schema_json(_model(namespace.document)), end="")
    return 0


def schema_json(model: type[BaseModel]) -> str:
    """Write a model's schema canonically."""
    return json.dumps(model.model_json_schema(mode="serialization"), indent=2, sort_keys=True) + "\n"


def _model(name: str) -> type[BaseModel]:
    match name:
        case "comparison":
            from agentcompass_bfcl.report.comparison_document import ComparisonDocument

            return ComparisonDocument
        case "decision":
            from agentcompass_bfcl.report.decision_document import DecisionDocument

            return DecisionDocument
    from agentcompass_bfcl.result import ResultDocument

    return ResultDocument
