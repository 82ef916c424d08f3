"""Notice early that a server ignores the tools it is sent: its score would be a number about nothing.

Two signs: not one call in the first replies that were asked for one, and prompts counted far shorter than what was
sent. Both point at the server's chat template or tool parser, not at the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# So many replies without one call is no accident: even weak models call something in most of them.
_FIRST_REPLIES = 20
# Prompt tokens are compared over the first replies that report them.
_FIRST_PROMPTS = 5
# Tokenizers make 3 to 5 characters of JSON a token; beyond 12 a good part of the text was never seen.
_MOST_CHARACTERS_A_TOKEN = 12


@dataclass(slots=True)
class ToolWatch:
    """Counts of one run's first replies. ``observe`` speaks at most once for each sign."""

    _asked: int = field(default=0, init=False)
    _called: bool = field(default=False, init=False)
    _prompts: int = field(default=0, init=False)
    _tokens: int = field(default=0, init=False)
    _characters: int = field(default=0, init=False)

    @property
    def wants_prompt_sizes(self) -> bool:
        """Tell whether ``sent_characters`` still matters; counting them costs a dump of the tools."""
        return self._prompts < _FIRST_PROMPTS

    def observe(
        self, *, wants_call: bool, has_call: bool, prompt_tokens: int | None, sent_characters: int
    ) -> str | None:
        """Take note of one reply to a request with tools, and return a warning when it completes a sign.

        ``sent_characters`` counts messages and tools as JSON.
        """
        return self._without_calls(wants_call, has_call) or self._short_prompts(prompt_tokens, sent_characters)

    def _without_calls(self, wants_call: bool, has_call: bool) -> str | None:
        self._called = self._called or has_call
        if not wants_call:
            return None
        self._asked += 1
        if self._called or self._asked != _FIRST_REPLIES:
            return None
        return (
            f"no tool call in the first {_FIRST_REPLIES} replies that were asked for one: the server probably does not "
            "parse tool calls (vLLM: --enable-auto-tool-choice and --tool-call-parser) "
            "or its chat template ignores tools"
        )

    def _short_prompts(self, prompt_tokens: int | None, sent_characters: int) -> str | None:
        if prompt_tokens is None or self._prompts >= _FIRST_PROMPTS:
            return None
        self._prompts += 1
        self._tokens += prompt_tokens
        self._characters += sent_characters
        if self._prompts < _FIRST_PROMPTS or self._tokens * _MOST_CHARACTERS_A_TOKEN >= self._characters:
            return None
        return (
            f"the server counted {self._tokens} prompt tokens for {self._characters} characters of messages and tools: "
            "its chat template probably leaves the tools out"
        )
