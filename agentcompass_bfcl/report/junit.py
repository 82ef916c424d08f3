"""A run as JUnit XML: a suite a subset, a case a sample; misses are failures, samples without a verdict are errors."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable

from agentcompass_bfcl.report.escaping import xml_text
from agentcompass_bfcl.sample_rows import SampleRow

_ELEMENT = {"miss": "failure", "unscored": "error"}


def junit_xml(rows: Iterable[SampleRow]) -> str:
    """Write the XML. Times are seconds of the request alone."""
    by_subset: dict[str, list[SampleRow]] = {}
    for row in rows:
        by_subset.setdefault(row.subset, []).append(row)
    root = ElementTree.Element("testsuites", name="bfcl")
    for subset, found in sorted(by_subset.items()):
        counts = {name: sum(row.verdict == verdict for row in found) for verdict, name in _ELEMENT.items()}
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=xml_text(subset),
            tests=str(len(found)),
            failures=str(counts["failure"]),
            errors=str(counts["error"]),
        )
        for row in found:
            _case(suite, row)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, row: SampleRow) -> None:
    name = row.id if row.attempt == 1 else f"{row.id} attempt {row.attempt}"
    case = ElementTree.SubElement(suite, "testcase", classname=xml_text(row.subset), name=xml_text(name))
    if row.latency_ms is not None:
        case.set("time", f"{row.latency_ms / 1000:.3f}")
    element = _ELEMENT.get(row.verdict)
    if element is not None:
        kind = xml_text(row.kind or "unknown")
        ElementTree.SubElement(case, element, type=kind, message=xml_text(row.detail or row.kind or ""))
