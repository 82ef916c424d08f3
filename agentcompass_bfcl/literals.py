"""Values as the checker's Java and JavaScript converters want to read them.

In these two languages every argument is a string that holds source code, and the official converters turn it back
into a value, in both modes. They read a small part of each language, sometimes oddly; what is written here is what
they read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from agentcompass_bfcl.subsets import Language

type Json = Any  # a parsed JSON value


def literal(value: Json, type_name: str, item_type: str | None, language: Language) -> Json:
    """Write a value of a documented type as an argument of a call.

    Python arguments are JSON values and stay as they are; Java and JavaScript arguments become source text. Text
    given for a type that is not text, such as an array's name, is a variable and is written bare.
    """
    match language:
        case Language.PYTHON:
            return value
        case Language.JAVA:
            return _java(value, type_name, item_type)
        case Language.JAVASCRIPT:
            return _javascript(value, type_name, item_type)


def literal_in_text(value: Json, type_name: str, item_type: str | None, language: Language) -> str:
    """Write a value as it stands behind ``parameter=`` in prompt mode.

    Java and JavaScript source goes between quotes that do not occur in it: upstream's parsers take the quotes off and
    undo no escapes, and of a Java object they keep no body. Java's single quotes may hold any text there.
    """
    written = literal(value, type_name, item_type, language)
    if language is Language.PYTHON:
        return repr(written)
    quote = next((quote for quote in ('"', "'") if quote not in written), "")
    return f"{quote}{written}{quote}"


def _java(value: Json, type_name: str, item_type: str | None) -> str:
    match value:
        case None | bool():
            return _WORDS[value]
        case str():
            return value
        case list() if type_name == "Array":
            # The array converter keeps the quotes of its elements, so that only unquoted text equals the answer.
            items = ", ".join(_java(item, item_type or "any", None) for item in value)
            return f"new {_JAVA_CLASS.get(item_type or 'any', item_type)}[]{{{items}}}"
        case list():
            items = ", ".join(_java_item(item, item_type or "any") for item in value)
            return f"new ArrayList<>(Arrays.asList({items}))" if items else "new ArrayList<>()"
        case dict():
            puts = " ".join(f'put("{key}", {_java_item(item, "any")});' for key, item in value.items())
            return f"new HashMap<String, Object>() {{{{ {puts} }}}}" if puts else "new HashMap<String, Object>()"
        case _:
            return f"{value}{_JAVA_SUFFIX.get(type_name, '')}"


_JAVA_SUFFIX = {"long": "L", "float": "f"}
_JAVA_CLASS = {"integer": "int", "any": "Object"}


def _java_item(item: Json, item_type: str) -> str:
    return json.dumps(item, ensure_ascii=False) if isinstance(item, str) else _java(item, item_type, None)


def _javascript(value: Json, type_name: str, item_type: str | None) -> str:
    match value:
        case None | bool():
            return _WORDS[value]
        case str():
            return value
        case list():
            return f"[{', '.join(_javascript_item(item, item_type or 'any') for item in value)}]"
        case dict():
            pairs = ", ".join(f'"{key}": {_javascript_item(item, "any")}' for key, item in value.items())
            return f"{{{pairs}}}"
        case float():
            return f"{Decimal(repr(value)):f}"  # the converter knows no exponents
        case _:
            return f"{value}{'n' if type_name == 'Bigint' else ''}"


def _javascript_item(item: Json, item_type: str) -> str:
    return json.dumps(item, ensure_ascii=False) if isinstance(item, str) else _javascript(item, item_type, None)


_WORDS: Mapping[bool | None, str] = MappingProxyType({True: "true", False: "false", None: "null"})
