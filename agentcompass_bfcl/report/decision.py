"""A gate's decision for a terminal, a CI system's summary, its test view, and for machines."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from tabulate import tabulate

from agentcompass_bfcl.errors import one_line
from agentcompass_bfcl.gate import Decision, Status, worst
from agentcompass_bfcl.json_files import json_text
from agentcompass_bfcl.report.decision_document import decision_document
from agentcompass_bfcl.report.escaping import markdown_text, xml_text


def render_decision(decisions: Sequence[Decision]) -> str:
    """Write every check with its reason, then the answer."""
    blocks = []
    for decision in decisions:
        rows = [
            [str(check.status), *(one_line(text) for text in (check.baseline or "-", check.name, check.reason))]
            for check in decision.checks
        ]
        table = tabulate(rows, headers=["check", "baseline", "of", "reason"], tablefmt="simple", disable_numparse=True)
        blocks.append(f"{one_line(str(decision.source))}: {decision.status}\n\n{table}")
    if len(decisions) > 1:
        blocks.append(f"all together: {worst(decisions)}")
    return "\n\n".join(blocks) + "\n"


def decision_markdown(decisions: Sequence[Decision]) -> str:
    """Write a table for a pull request or a CI system's step summary; nothing in it is taken for markup."""
    lines = []
    for decision in decisions:
        lines += [f"### Gate {decision.status}: {markdown_text(_named(decision))}", ""]
        lines += ["| check | baseline | of | reason |", "|---|---|---|---|"]
        for check in decision.checks:
            texts = (markdown_text(text) for text in (check.baseline or "-", check.name, check.reason))
            lines.append(f"| {check.status} | {' | '.join(texts)} |")
        lines.append("")
    return "\n".join(lines) + "\n"


def decision_junit(decisions: Sequence[Decision]) -> str:
    """Write a suite a run and a case a check: failed ones as failures, those that could not be judged as errors.

    A case's class is the baseline that asked, so that two of a file do not look like one.
    """
    root = ElementTree.Element("testsuites", name="agentcompass-bfcl gate")
    for decision in decisions:
        counts = {status: sum(check.status is status for check in decision.checks) for status in Status}
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=xml_text(f"gate {_named(decision)}"),
            tests=str(len(decision.checks)),
            failures=str(counts[Status.FAILED]),
            errors=str(counts[Status.NOT_JUDGED] + counts[Status.ERROR]),
        )
        for check in decision.checks:
            asked = xml_text(check.baseline or "gate")
            case = ElementTree.SubElement(suite, "testcase", classname=asked, name=xml_text(check.name))
            if check.status is Status.FAILED:
                ElementTree.SubElement(case, "failure", message=xml_text(check.reason))
            elif check.status is not Status.PASSED:
                ElementTree.SubElement(case, "error", type=str(check.status), message=xml_text(check.reason))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def decision_json(decisions: Sequence[Decision]) -> str:
    """Write a ``DecisionDocument`` canonically: sorted keys, two blanks, a newline at the end."""
    return json_text(decision_document(decisions).model_dump(mode="json"), sort_keys=True)


def _named(decision: Decision) -> str:
    if not decision.identity:
        return str(decision.source)
    return f"{decision.identity.get('model')}, draw {decision.identity.get('draw')} ({decision.source})"
