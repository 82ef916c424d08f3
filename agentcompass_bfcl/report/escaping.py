"""Text of a model or a user in other notations, where it must stay text."""

from __future__ import annotations

import re

from agentcompass_bfcl.errors import one_line

# XML 1.0 has no place for these, not even as references.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKS = re.compile(r"([\\`*_{}\[\]()#!|~])")


def plain_lines(text: str) -> str:
    """Keep the lines of a text, without what would move a terminal's cursor or change its colours."""
    return "\n".join("".join(letter if letter.isprintable() else " " for letter in line) for line in text.split("\n"))


def markdown_text(text: str) -> str:
    """Write text for a Markdown table: one line, and nothing in it is markup."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", plain)


def markdown_code(text: str) -> str:
    """Write text as a span of code on one line, between more backticks than stand in it anywhere."""
    plain = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    blank = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{blank}{plain}{blank}{fence}"


def xml_text(text: str) -> str:
    """Leave out the characters that XML cannot hold; the others are escaped by whoever writes the XML."""
    return _NOT_IN_XML.sub("", text)
