"""The answer to an event that cannot be steered, found without parsers, settings or memory.

Of the commands of a coding agent nearly all are of this kind, and the agent waits for each
answer. Imports only what json imports.
"""

from __future__ import annotations

import json

from ci_agent_eval.steering.hook.event_fields import (
    ALLOW_OUTPUTS,
    ARGUMENT_FIELDS,
    TOOL_FIELDS,
    recognize_agent_name,
)
from ci_agent_eval.steering.hook.settings_summary import HookFiles, load_summary
from ci_agent_eval.steering.policy.prefilter import iterate_texts, may_be_dangerous, may_run_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ci_agent_eval.steering.hook.options import HookOptions


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
    if summary["has_rules"] or any("test" in str(name).lower() for name in names):
        return True
    return any(
        may_run_tests(text, summary["commands"])
        or (summary["dangerous"] and may_be_dangerous(text))
        for text in iterate_texts(arguments)
    )
