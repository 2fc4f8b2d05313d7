"""The answer to an event that cannot be steered, found without parsers, settings or memory.

Of the commands of a coding agent most are of this kind, and the agent waits for each answer.
Imports only what json imports.
"""

from __future__ import annotations

import json
import os

from ci_agent_eval.steering.hook.event_fields import (
    ALLOW_OUTPUTS,
    ARGUMENT_FIELDS,
    TOOL_FIELDS,
    recognize_agent_name,
)
from ci_agent_eval.steering.locations import find_settings
from ci_agent_eval.steering.policy.mentions import may_run_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ci_agent_eval.steering.hook.options import HookOptions


def find_quick_answer(options: HookOptions, data: bytes, environ: Mapping[str, str]) -> str | None:
    """Return the text for standard output; None if the event needs the full answer.

    With a settings file every event does.
    """
    try:
        event = json.loads(data)
        output = ALLOW_OUTPUTS.get(options.agent or recognize_agent_name(event) or "")
        arguments = [event[name] for name in ARGUMENT_FIELDS if name in event]
        # A tool's name stands for its program: `run_pytest`.
        is_runner = any("test" in str(event.get(name)).lower() for name in TOOL_FIELDS)
        has_settings = os.path.lexists(find_settings(environ, options.config))
        if options.problem or not arguments or is_runner or has_settings:
            return None
        return None if may_run_tests("\n".join(_iterate_texts(arguments))) else output
    except Exception:  # noqa: BLE001 - the full answer describes the error
        return None


def _iterate_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(part)
