"""A gate's decision for a terminal, a CI system's summary, its test view, and for machines."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from tabulate import tabulate

from agentcompass_bfcl.gate import Decision, Status, worst
from agentcompass_bfcl.report.escaping import markdown_text, one_line, xml_text


def render_decision(decisions: Sequence[Decision]) -> str:
    """Write every check with its reason, then the answer."""
    blocks = []
    for decision in decisions:
        rows = [[str(check.status), check.name, one_line(check.reason)] for check in decision.checks]
        table = tabulate(rows, headers=["check", "of", "reason"], tablefmt="simple", disable_numparse=True)
        blocks.append(f"{decision.record.source}: {decision.status}\n\n{table}")
    if len(decisions) > 1:
        blocks.append(f"all together: {worst(decisions)}")
    return "\n\n".join(blocks) + "\n"


def decision_markdown(decisions: Sequence[Decision]) -> str:
    """Write a table for a pull request or a CI system's step summary; nothing in it is taken for markup."""
    lines = []
    for decision in decisions:
        model, draw = (markdown_text(str(decision.record.identity.get(key))) for key in ("model", "draw"))
        lines += [f"### Gate {decision.status}: {model}, draw {draw}", "", "| check | of | reason |", "|---|---|---|"]
        lines += [
            f"| {check.status} | {markdown_text(check.name)} | {markdown_text(check.reason)} |"
            for check in decision.checks
        ]
        lines.append("")
    return "\n".join(lines) + "\n"


def decision_junit(decisions: Sequence[Decision]) -> str:
    """Write a suite a run and a case a check: failed ones as failures, those that could not be judged as errors."""
    root = ElementTree.Element("testsuites", name="agentcompass-bfcl gate")
    for decision in decisions:
        counts = {status: sum(check.status is status for check in decision.checks) for status in Status}
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=xml_text(f"gate {decision.record.identity.get('model')}"),
            tests=str(len(decision.checks)),
            failures=str(counts[Status.FAILED]),
            errors=str(counts[Status.NOT_JUDGED]),
        )
        for check in decision.checks:
            case = ElementTree.SubElement(suite, "testcase", classname="gate", name=xml_text(check.name))
            if check.status is Status.FAILED:
                ElementTree.SubElement(case, "failure", message=xml_text(check.reason))
            elif check.status is Status.NOT_JUDGED:
                ElementTree.SubElement(case, "error", message=xml_text(check.reason))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def decision_json(decisions: Sequence[Decision]) -> str:
    """Write the decision canonically: ``{"schema_version", "status", "runs": [{"source", "status", "checks"}]}``."""
    document = {
        "schema_version": 1,
        "status": str(worst(decisions)),
        "runs": [
            {
                "source": str(decision.record.source),
                "model": decision.record.identity.get("model"),
                "draw": decision.record.identity.get("draw"),
                "status": str(decision.status),
                "checks": [
                    {"name": check.name, "status": str(check.status), "reason": check.reason}
                    for check in decision.checks
                ],
            }
            for decision in decisions
        ],
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
