"""The answer to an event that cannot be steered, found without parsers, settings or memory.

Of the commands of a coding agent nearly all are of this kind, and the agent waits for each
answer. Imports only what json imports.
"""

from __future__ import annotations

import json
import re

from ci_agent_eval.steering.hook.event_fields import (
    ALLOW_OUTPUTS,
    ARGUMENT_FIELDS,
    TOOL_FIELDS,
    recognize_agent_name,
)
from ci_agent_eval.steering.hook.settings_summary import HookFiles, load_summary
from ci_agent_eval.steering.policy.prefilter import (
    COMPOSED_KEYS,
    iterate_texts,
    may_be_dangerous,
    may_run_tests,
    parse_json_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ci_agent_eval.steering.hook.options import HookOptions

_COMPOSED = {*COMPOSED_KEYS, "language"}
"""Arguments with which a command has another text than each of them."""


def find_quick_answer(options: HookOptions, data: bytes, environ: Mapping[str, str]) -> str | None:
    """Return the text for standard output; None if the event needs the full answer."""
    try:
        event = json.loads(data)
        output = ALLOW_OUTPUTS.get(options.agent or recognize_agent_name(event) or "")
        summary = load_summary(HookFiles(options, environ))
        arguments = [event[name] for name in ARGUMENT_FIELDS if name in event]
        if options.problem or output is None or summary is None or not arguments:
            return None
        names = [event[name] for name in TOOL_FIELDS if name in event]
        return None if _may_be_steered(names, arguments, summary) else output
    except Exception:  # noqa: BLE001 - the full answer describes the error
        return None


def _may_be_steered(
    names: list[object], arguments: list[object], summary: Mapping[str, Any]
) -> bool:
    # A tool's name stands for its program: `run_pytest`.
    if any("test" in str(name).lower() for name in names):
        return True
    return any(
        may_run_tests(text, summary["commands"])
        or (summary["dangerous"] and may_be_dangerous(text))
        for argument in arguments
        for text in iterate_texts(argument)
    ) or (bool(summary["patterns"]) and _may_match(names, arguments, summary["patterns"]))


def _may_match(names: list[object], arguments: list[object], patterns: list[str]) -> bool:
    """Return False if none of the user's rules can match a call."""
    if any("python" in str(name).lower() for name in names):
        return True  # it prepends its program
    texts = [_list_searched_texts(argument) for argument in arguments]
    return any(
        found is None or any(re.search(pattern, text) for pattern in patterns for text in found)
        for found in texts
    )


def _list_searched_texts(argument: object) -> list[str] | None:
    """Return all texts that rules may search in a tool's arguments; None if it composes them."""
    fields = parse_json_text(argument) if isinstance(argument, str) else argument
    if fields is None:
        fields = {"command": argument}
    if not isinstance(fields, dict) or _COMPOSED.intersection(map(str.lower, fields)):
        return None
    texts = [value for value in fields.values() if isinstance(value, str)]
    if any(map(parse_json_text, texts)) or any(isinstance(v, dict | list) for v in fields.values()):
        return None
    as_json = json.dumps(fields, ensure_ascii=False, sort_keys=True)
    return [*texts, as_json, argument if isinstance(argument, str) else ""]
