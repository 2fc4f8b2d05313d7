"""The simulated user: a persona, and what it speaks with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ci_agent_eval.authoring.simulation.conversation import (
    STOP_TOKEN,
    History,
    UserMessage,
    parse_user_message,
)
from ci_agent_eval.authoring.simulation.episode_access import run_awaitable
from ci_agent_eval.authoring.simulation.result import UserUsage
from ci_agent_eval.authoring.simulation.script import (
    ScriptEntry,
    SimulationEnd,
    get_fixed_message,
    get_script_message,
    parse_responses,
    parse_script,
)
from ci_agent_eval.authoring.simulation.steps import Steps, await_if_needed, run_steps
from ci_agent_eval.authoring.simulation.user_model import (
    UsageCounter,
    ask_user_function,
    ask_user_model,
)
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

MessageSource: TypeAlias = Callable[[int, History], Steps[Any]]
"""Says the message of a number (0-based) in a conversation; a text, or why there is none."""


class SimulatedUser:
    """A user of an app, played by fixed responses, a script, or a model.

    `fixed_responses` are said in order, again from the first after the last. A `script` is
    said once: texts, functions of the app's last reply, or rules (a regular expression,
    searched in that reply whatever its case, to a message). A `model` is named as the
    engine names it ("openai:gpt-5-mini", or a `Provider`), or is any function of persona
    and history, plain or async. Texts that are given go before the model: without one,
    nothing is left to chance.

    A message that holds the `stop_token` is the user's last; None turns that off. A model
    is told of it, and of the `goal` (a sentence). `max_history_messages` is how many of
    the last messages a model is shown.

    Raises InputError for what cannot be used.
    """

    def __init__(
        self,
        persona: str,
        model: object = None,
        fixed_responses: Sequence[str] | None = None,
        script: Sequence[ScriptEntry] | None = None,
        max_history_messages: int | None = None,
        *,
        goal: str | None = None,
        stop_token: str | None = STOP_TOKEN,
        timeout_s: float | None = 60.0,
    ) -> None:
        self.persona = _require_text("persona", persona)
        self.model = model
        self.fixed_responses = parse_responses(fixed_responses or ())
        self.script = None if script is None else parse_script(script)
        self.max_history_messages = _require_count(max_history_messages)
        self.goal = goal
        self.stop_token = None if stop_token is None else _require_text("stop_token", stop_token)
        self.timeout_s = timeout_s
        self._direct: UserSession | None = None
        if self.fixed_responses and self.script is not None:
            raise InputError("SimulatedUser: give fixed_responses or a script, not both")
        if _is_declared_user(self):
            self._speak(UsageCounter())

    def generate_response(self, conversation_history: History) -> str:
        """Return the user's next message, as Opik's: fixed responses and scripts go on.

        `run_simulation` begins anew each time. A class of your own may say something else
        here. Raises InputError where a script has ended.
        """
        if self._direct is None:
            self._direct = open_declared_session(self)
        said = run_steps(self._direct.say(conversation_history), run_awaitable)
        if isinstance(said, SimulationEnd):
            raise InputError(f"SimulatedUser: it has nothing more to say ({said.reason})")
        return said.text if not said.last else f"{said.text} {self.stop_token}".strip()

    def _speak(self, tally: UsageCounter) -> MessageSource:
        """Return what it speaks with. Raises InputError where there is nothing."""
        if self.fixed_responses:
            responses = self.fixed_responses
            return lambda number, _: get_fixed_message(responses, number)
        if self.script is not None:
            script = self.script
            return lambda number, history: get_script_message(script, number, history)
        if self.model is None:
            raise InputError(
                "SimulatedUser: it has nothing to say; give fixed_responses, a script or a model"
            )
        ask = ask_user_function if callable(self.model) else ask_user_model
        return lambda _, history: ask(self, self._shown(history), tally)

    def _shown(self, history: History) -> History:
        most = self.max_history_messages
        return history if most is None else history[-most:]


@dataclass
class UserSession:
    """A user in one conversation."""

    speak: MessageSource
    stop_token: str | None
    tally: UsageCounter = field(default_factory=UsageCounter)
    number: int = 0

    @property
    def usage(self) -> UserUsage:
        """What its model took so far."""
        return self.tally.usage

    def say(self, history: History) -> Steps[UserMessage | SimulationEnd]:
        """Say the next message. Raises SimulatedUserError where its model fails."""
        said = yield from self.speak(self.number, history)
        self.number += 1
        if said is None or isinstance(said, SimulationEnd):
            return said or SimulationEnd("script_ended")
        if not isinstance(said, str):
            kind = type(said).__name__
            raise InputError(f"the simulated user said a {kind}; it has to return a text")
        return parse_user_message(said, self.stop_token)


def open_user_session(user: object) -> UserSession:
    """Return the voice of any user: ours, a class made of ours, or anything of Opik's kind.

    Raises InputError for what cannot speak.
    """
    if isinstance(user, SimulatedUser) and _is_declared_user(user):
        return open_declared_session(user)
    generate = getattr(user, "generate_response", None)
    if not callable(generate):
        kind = type(user).__name__
        raise InputError(
            f"run_simulation: a {kind} is no user; give a SimulatedUser, or an object with "
            "generate_response(conversation_history)"
        )
    return UserSession(
        lambda _, history: await_if_needed(generate(history)),
        getattr(user, "stop_token", STOP_TOKEN),
    )


def open_declared_session(user: SimulatedUser) -> UserSession:
    """Return the voice of what a SimulatedUser declares, from its first message on."""
    tally = UsageCounter()
    return UserSession(user._speak(tally), user.stop_token, tally)  # noqa: SLF001 - of this module


def _is_declared_user(user: SimulatedUser) -> bool:
    """Say whether its messages are those declared, and not those of a class of the test's."""
    return type(user).generate_response is SimulatedUser.generate_response


def _require_text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"SimulatedUser.{name}: must be a text that is not empty, got {value!r}")
    return value


def _require_count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            f"SimulatedUser.max_history_messages: must be a whole number, 1 or more, got {value!r}"
        )
    return value
