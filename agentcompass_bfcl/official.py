"""The one door to official code: it is loaded out of the verified wheel, into modules nobody else can import.

Nothing of bfcl-eval is installed, put on ``sys.path`` or left in ``sys.modules``. Its modules see a short list of
standard library modules, no ``open`` or ``exec``, and an ``eval`` that only knows arithmetic on literals. Its Java and
JavaScript parsers are loaded when prompt mode first needs them, with stand-ins for the libraries they import.
"""

from __future__ import annotations

import builtins
import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

from agentcompass_bfcl import release
from agentcompass_bfcl.arithmetic import evaluate_literals
from agentcompass_bfcl.errors import CheckerError
from agentcompass_bfcl.parsers import load_parser_modules
from agentcompass_bfcl.stand_ins import ast_module, refusal, stub
from agentcompass_bfcl.subsets import Language
from agentcompass_bfcl.wheel import Wheel

type Json = Any  # a parsed JSON value

_FROM_WHEEL = (
    "constants.enums",
    "constants.type_mappings",
    "constants.default_prompts",
    "constants.category_mapping",
    "constants.executable_backend_config",
    "eval_checker.ast_eval.type_convertor.java_type_converter",
    "eval_checker.ast_eval.type_convertor.js_type_converter",
    "eval_checker.ast_eval.ast_checker",
    "utils",
    "model_handler.utils",
    "model_handler.parser.java_parser",
    "model_handler.parser.js_parser",
)
_STANDARD_LIBRARY = frozenset(
    {"builtins", "copy", "enum", "functools", "hashlib", "json", "operator", "os", "pathlib", "re"}
    | {"threading", "typing"}
)
_WITHHELD = ("open", "exec", "compile", "input", "breakpoint", "exit", "quit", "help")

# The checker asks by model name whether dots in function names became underscores, as OpenAI-style APIs want it.
_FC_MODEL, _PROMPT_MODEL = "fc", "prompt"


@dataclass(frozen=True, slots=True)
class Official:
    """The official functions this package calls, each with upstream's own results.

    Arguments are edited in place by upstream: hand over fresh objects only.
    """

    _enums: ModuleType
    _types: ModuleType
    _utils: ModuleType
    _handler: ModuleType
    _checker: ModuleType

    def tools(self, functions: list[dict[str, Json]], sample_id: str) -> list[dict[str, Json]]:
        """Convert function documents to OpenAI-style tools as the official generator sends them.

        Language hints come first, and turn every Java and JavaScript parameter into a string.
        """
        hinted = self._hinted(functions, sample_id)
        style = self._enums.ModelStyle.OPENAI_COMPLETIONS
        tools: list[dict[str, Json]] = self._handler.convert_to_tool(hinted, self._types.GORILLA_TO_OPENAPI, style)
        return tools

    def prompt_messages(
        self, messages: list[dict[str, Json]], functions: list[dict[str, Json]], sample_id: str
    ) -> list[dict[str, Json]]:
        """Put the official system prompt, which documents the functions, before a row's own messages.

        Functions get the same language hints as tools do, but keep their names. A system message of the row's own
        is appended to the prompt.
        """
        hinted = self._hinted(functions, sample_id)
        asked: list[dict[str, Json]] = self._handler.system_prompt_pre_processing_chat_model(
            messages, hinted, sample_id
        )
        return asked

    def _hinted(self, functions: list[dict[str, Json]], sample_id: str) -> Json:
        entry = {"id": sample_id, "function": functions}
        return self._utils.add_language_specific_hint_to_function_doc([entry])[0]["function"]

    def decode_prompt(self, output: Json, language: Language) -> Json:
        """Decode what a model wrote in prompt mode: ``[{name: {parameter: value}}, ...]``, or something else.

        Upstream returns other things for some Java and JavaScript texts. Raises whatever official code raises for a
        text that is no list of calls, and ``ConfigError`` without the parsers that Java and JavaScript need.
        """
        return self._handler.default_decode_ast_prompting(output, self._enums.ReturnFormat(language.value))

    def is_call_list(self, decoded: Json) -> bool:
        """Tell whether a decoded output is ``[{name: {parameter: value}}, ...]``; an empty list is."""
        return bool(self._utils.is_function_calling_format_output(decoded))

    def holds_no_call(self, decoded: Json) -> bool:
        """Tell whether a decoded output counts as an abstention: malformed or empty."""
        return bool(self._utils.is_empty_output(decoded))

    def check_calls(
        self,
        functions: list[dict[str, Json]],
        decoded: list[dict[str, Json]],
        answers: list[dict[str, Json]],
        language: Language,
        subset: str,
        *,
        dots_became_underscores: bool,
    ) -> dict[str, Json]:
        """Judge decoded calls: ``{"valid": bool, "error": [...], "error_type": str}``.

        Raises whatever the official checker raises; it does on some outputs.
        """
        verdict: dict[str, Json] = self._checker.ast_checker(
            functions,
            decoded,
            answers,
            self._enums.Language(language.value),
            subset,
            _FC_MODEL if dots_became_underscores else _PROMPT_MODEL,
        )
        return verdict


def load_official(wheel: Wheel) -> Official:
    """Load the official checker and converters from the wheel (about 50 ms).

    Raises ``CheckerError`` when the code asks for a module it should not need, ``DatasetError`` for a damaged wheel.
    """
    loader = _Loader(wheel)
    return Official(
        _enums=loader.module("constants.enums"),
        _types=loader.module("constants.type_mappings"),
        _utils=loader.module("utils"),
        _handler=loader.module("model_handler.utils"),
        _checker=loader.module("eval_checker.ast_eval.ast_checker"),
    )


def checker_identity() -> str:
    """Identify the code that judges: the release and the checker's own sha256."""
    checker = release.FILE_SHA256["eval_checker/ast_eval/ast_checker.py"]
    return f"{release.DISTRIBUTION}=={release.VERSION};ast_checker-sha256:{checker}"


class _Loader:
    """Resolve the imports of official code among its own modules, stand-ins and the allowed standard library."""

    def __init__(self, wheel: Wheel) -> None:
        self._files = wheel.read_all([_path(name) for name in _FROM_WHEEL])
        self._loaded: dict[str, ModuleType] = {f"bfcl_eval.{name}": module for name, module in _stand_ins().items()}
        self._loaded["ast"] = ast_module()
        self._loaded["filelock"] = stub("filelock", FileLock=refusal("FileLock"))
        self._loaded["tenacity"] = stub("tenacity", **{name: refusal(name) for name in _TENACITY})
        for parser, function in _PARSERS.items():
            name = f"bfcl_eval.model_handler.parser.{parser}"
            self._loaded[name] = stub(parser, **{function: self._parse_later(parser, function)})
        self._builtins = {**vars(builtins), "__import__": self._import, "eval": evaluate_literals, "print": _silent}
        for name in _WITHHELD:
            self._builtins.pop(name, None)

    def module(self, name: str) -> ModuleType:
        full_name = f"bfcl_eval.{name}"
        if full_name in self._loaded:
            return self._loaded[full_name]
        if name not in _FROM_WHEEL:
            raise CheckerError(f"official code wants bfcl_eval.{name}, which this release should not need")
        return self._run(name)

    def _run(self, name: str) -> ModuleType:
        full_name = f"bfcl_eval.{name}"
        path = _path(name)
        code = compile(self._files[path], f"{release.WHEEL_NAME}/bfcl_eval/{path}", "exec", dont_inherit=True)
        module = ModuleType(full_name)
        vars(module)["__builtins__"] = self._builtins
        self._loaded[full_name] = module
        exec(code, vars(module))  # noqa: S102 - the file's sha256 is pinned in release.py
        return module

    def _parse_later(self, parser: str, function: str) -> Callable[[str], Json]:
        real: list[Callable[[str], Json]] = []

        def parse(source: str) -> Json:
            if not real:
                self._loaded |= load_parser_modules("prompt mode with Java or JavaScript functions")
                real.append(vars(self._run(f"model_handler.parser.{parser}"))[function])
            return real[0](source)

        return parse

    def _import(
        self,
        name: str,
        _globals: Mapping[str, object] | None = None,
        _locals: Mapping[str, object] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if name in self._loaded:
            return self._loaded[name]
        if name.startswith("bfcl_eval.") and fromlist and level == 0:
            return self.module(name.removeprefix("bfcl_eval."))
        if name in _STANDARD_LIBRARY and level == 0:
            return importlib.import_module(name)
        raise CheckerError(f"official code wants the module {name!r}, which it should not need")


_PARSERS = {"java_parser": "parse_java_function_call", "js_parser": "parse_javascript_function_call"}
_TENACITY = ("retry", "retry_if_exception_message", "retry_if_exception_type", "wait_random_exponential")


def _path(name: str) -> str:
    return f"{name.replace('.', '/')}.py"


def _stand_ins() -> dict[str, ModuleType]:
    """Stand in for modules that need heavy dependencies or make directories when imported."""
    underscore = {
        _FC_MODEL: SimpleNamespace(underscore_to_dot=True),
        _PROMPT_MODEL: SimpleNamespace(underscore_to_dot=False),
    }
    parsers = {
        "json_parser": ("parse_json_function_call",),
        "xml_parser": ("parse_concise_xml_function_call", "parse_verbose_xml_function_call"),
    }
    modules = {
        "constants.model_config": stub("model_config", MODEL_CONFIG_MAPPING=MappingProxyType(underscore)),
        "constants.eval_config": stub("eval_config"),
    }
    for parser, functions in parsers.items():
        modules[f"model_handler.parser.{parser}"] = stub(parser, **{name: refusal(name) for name in functions})
    return modules


def _silent(*_args: object, **_kwargs: object) -> None:
    """Swallow what upstream's JavaScript converter prints for every dictionary it cannot read."""


def decode_function_calls(output: Json) -> list[dict[str, Json]]:
    """Decode a function-calling output ``[{name: arguments as JSON text}, ...]`` by the official rule.

    Only the first key of each call counts. Raises what a malformed call makes it raise: ``ValueError``,
    ``TypeError``, ``AttributeError``, ``IndexError``, ``KeyError`` or ``RecursionError``.
    """
    decoded = []
    for call in output:
        name = next(iter(call.keys()), None)
        if name is None:
            raise IndexError("a call without a name")
        decoded.append({name: json.loads(call[name])})
    return decoded
