"""A server that ignores tools is noticed after twenty replies, or at the first prompts that are counted too short."""

from __future__ import annotations

from agentcompass_bfcl.tool_watch import ToolWatch


def _warnings(watch: ToolWatch, replies: list[tuple[bool, bool, int | None, int]]) -> list[str]:
    found = [
        watch.observe(wants_call=wants, has_call=has, prompt_tokens=tokens, sent_characters=characters)
        for wants, has, tokens, characters in replies
    ]
    return [warning for warning in found if warning is not None]


def test_twenty_replies_without_a_call_warn_once() -> None:
    watch = ToolWatch()
    assert _warnings(watch, [(True, False, None, 400)] * 19) == []
    [warning] = _warnings(watch, [(True, False, None, 400)] * 30)
    assert "tool parser" in warning or "tool-call-parser" in warning


def test_one_call_anywhere_silences_the_warning() -> None:
    replies = [(True, False, None, 400)] * 10 + [(False, True, None, 400)] + [(True, False, None, 400)] * 30
    assert _warnings(ToolWatch(), replies) == []


def test_replies_that_want_no_call_do_not_count() -> None:
    assert _warnings(ToolWatch(), [(False, False, None, 400)] * 100) == []


def test_prompts_counted_far_too_short_warn_at_the_fifth() -> None:
    watch = ToolWatch()
    assert _warnings(watch, [(True, True, 30, 2_400)] * 4) == []
    [warning] = _warnings(watch, [(True, True, 30, 2_400)] * 5)
    assert "150 prompt tokens for 12000 characters" in warning
    assert "chat template" in warning


def test_ordinary_prompt_counts_are_no_sign() -> None:
    assert _warnings(ToolWatch(), [(True, True, 600, 2_400)] * 10) == []


def test_servers_that_count_no_tokens_are_no_sign() -> None:
    assert _warnings(ToolWatch(), [(True, True, None, 2_400)] * 10) == []
