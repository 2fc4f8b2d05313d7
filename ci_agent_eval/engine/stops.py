"""Stops of errors, by a table in order of priority, and of the last answer."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from traceback import walk_tb

from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.stops import Stop, StopReason, find_stop_cause
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.engine.cassette.session import CassetteSession

_PYDANTIC = "pydantic_ai.exceptions"
_OWN = "ci_agent_eval.engine.infrastructure_errors"

STOPS_BY_ERROR: Mapping[str, tuple[StopReason, str]] = {
    f"{_PYDANTIC}.RunTimedOut": ("timeout", "its own time was up"),
    f"{_PYDANTIC}.RunCancelled": ("cancelled", "it was stopped from inside"),
    f"{_PYDANTIC}.UsageLimitExceeded": (
        "max_turns",
        "it was not done when its turns were used up",
    ),
    f"{_PYDANTIC}.IncompleteToolCall": (
        "truncated",
        "the model's tool call was cut at its token limit",
    ),
    f"{_PYDANTIC}.ContentFilterError": ("refusal", "the model refused, or was filtered"),
    f"{_PYDANTIC}.ModelContextWindowExceededError": (
        "context_window",
        "the request no longer fits the model",
    ),
    f"{_PYDANTIC}.ModelAPIError": ("model_error", "the model's API failed"),
    f"{_OWN}.ModelError": ("model_error", "the model gave no answer"),
    f"{_PYDANTIC}.UnexpectedModelBehavior": ("model_error", "the model's answer was of no use"),
    f"{_OWN}.ServerError": ("server_error", "a tool server failed"),
}
"""Stop of each type of error, by its full name: most agents have no PydanticAI."""

_INSTALLED = (
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    str(Path(__file__).parents[1]),
)
"""Folders of code that is not the agent's."""

CONTEXT_WINDOW = "context_length_exceeded"
"""Code of OpenAI-compatible APIs for a request that does not fit the model."""


def look_up_error(error: BaseException) -> Stop | None:
    """Return the stop of an error in the table; of a group, the stop common to all."""
    if isinstance(error, BaseExceptionGroup):
        ends = [look_up_error(member) for member in error.exceptions]
        return ends[-1] if len({end and end.reason for end in ends}) == 1 else None
    if getattr(error, "code", None) == CONTEXT_WINDOW:
        return Stop(
            "context_window", f"the request no longer fits the model: {describe_error(error)}"
        )
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    for kind, (reason, text) in STOPS_BY_ERROR.items():
        if kind in kinds:
            is_cut_off = reason == "max_turns"
            return Stop(reason, f"{text}: {_strip_advice(error)}", needs_turn=is_cut_off)
    return None


def describe_own_error(error: BaseException) -> str:
    """Describe an error of the agent's code, with the last place outside of installed packages."""
    frames = [
        (Path(frame.f_code.co_filename), line) for frame, line in walk_tb(error.__traceback__)
    ]
    own = [(path, line) for path, line in frames if not str(path).startswith(("<", *_INSTALLED))]
    return describe_error(error) + "".join(f" ({path.name}:{line})" for path, line in own[-1:])


def find_unfinished_stop(turns: Sequence[Turn]) -> Stop | None:
    """Return the stop of a last answer that is empty, refused or cut; else None."""
    answers = [turn for turn in turns if turn.role == "assistant"]
    return find_stop_cause(answers[-1]) if answers else None


def build_refusal_check(cassette_session: CassetteSession | None) -> Callable[[Stop], Stop]:
    """Return a function that turns a stop into a model error if the cassette refused a request.

    A tool may catch the error and go on, but the run is then not the agent's.
    """
    before = 0 if cassette_session is None else len(cassette_session.refusals)

    def check_refusals(stop: Stop) -> Stop:
        refused = [] if cassette_session is None else cassette_session.refusals[before:]
        is_known = stop.reason == "model_error" and any(
            refusal in stop.error for refusal in refused
        )
        if not refused or is_known:
            return stop
        return Stop("model_error", f"the cassette did not answer a request: {refused[0]}")

    return check_refusals


def _strip_advice(error: BaseException) -> str:
    """Describe an error without PydanticAI's hints at its documentation."""
    return describe_error(error).partition(" Consider raising the limit")[0]
