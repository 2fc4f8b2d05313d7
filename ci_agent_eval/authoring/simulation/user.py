"""The simulated user: a persona, and what it speaks with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ci_agent_eval.authoring.simulation.conversation import STOP_TOKEN, History, Spoken, spoken
from ci_agent_eval.authoring.simulation.result import UserUsage
from ci_agent_eval.authoring.simulation.running import run_awaitable
from ci_agent_eval.authoring.simulation.script import (
    Entry,
    Leaves,
    checked_responses,
    checked_script,
    fixed_line,
    script_line,
)
from ci_agent_eval.authoring.simulation.speaking import Tally, ask_engine, ask_function
from ci_agent_eval.authoring.simulation.steps import Steps, run_steps, settled
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

Speak: TypeAlias = Callable[[int, History], Steps[Any]]
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
        script: Sequence[Entry] | None = None,
        max_history_messages: int | None = None,
        *,
        goal: str | None = None,
        stop_token: str | None = STOP_TOKEN,
        timeout_s: float | None = 60.0,
    ) -> None:
        self.persona = _checked_text("persona", persona)
        self.model = model
        self.fixed_responses = checked_responses(fixed_responses or ())
        self.script = None if script is None else checked_script(script)
        self.max_history_messages = _checked_count(max_history_messages)
        self.goal = goal
        self.stop_token = None if stop_token is None else _checked_text("stop_token", stop_token)
        self.timeout_s = timeout_s
        self._direct: Voice | None = None
        if self.fixed_responses and self.script is not None:
            raise InputError("SimulatedUser: give fixed_responses or a script, not both")
        if _speaks_by_itself(self):
            self._speak(Tally())

    def generate_response(self, conversation_history: History) -> str:
        """Return the user's next message, as Opik's: fixed responses and scripts go on.

        `run_simulation` begins anew each time. A class of your own may say something else
        here. Raises InputError where a script has ended.
        """
        if self._direct is None:
            self._direct = voice_of_declared(self)
        said = run_steps(self._direct.say(conversation_history), run_awaitable)
        if isinstance(said, Leaves):
            raise InputError(f"SimulatedUser: it has nothing more to say ({said.reason})")
        return said.text if not said.last else f"{said.text} {self.stop_token}".strip()

    def _speak(self, tally: Tally) -> Speak:
        """Return what it speaks with. Raises InputError where there is nothing."""
        if self.fixed_responses:
            responses = self.fixed_responses
            return lambda number, _: fixed_line(responses, number)
        if self.script is not None:
            script = self.script
            return lambda number, history: script_line(script, number, history)
        if self.model is None:
            raise InputError(
                "SimulatedUser: it has nothing to say; give fixed_responses, a script or a model"
            )
        ask = ask_function if callable(self.model) else ask_engine
        return lambda _, history: ask(self, self._shown(history), tally)

    def _shown(self, history: History) -> History:
        most = self.max_history_messages
        return history if most is None else history[-most:]


@dataclass
class Voice:
    """A user in one conversation."""

    speak: Speak
    stop_token: str | None
    tally: Tally = field(default_factory=Tally)
    number: int = 0

    @property
    def usage(self) -> UserUsage:
        """What its model took so far."""
        return self.tally.usage

    def say(self, history: History) -> Steps[Spoken | Leaves]:
        """Say the next message. Raises SimulatedUserError where its model fails."""
        said = yield from self.speak(self.number, history)
        self.number += 1
        if said is None or isinstance(said, Leaves):
            return said or Leaves("script_ended")
        if not isinstance(said, str):
            kind = type(said).__name__
            raise InputError(f"the simulated user said a {kind}; it has to return a text")
        return spoken(said, self.stop_token)


def voice_of(user: object) -> Voice:
    """Return the voice of any user: ours, a class made of ours, or anything of Opik's kind.

    Raises InputError for what cannot speak.
    """
    if isinstance(user, SimulatedUser) and _speaks_by_itself(user):
        return voice_of_declared(user)
    generate = getattr(user, "generate_response", None)
    if not callable(generate):
        kind = type(user).__name__
        raise InputError(
            f"run_simulation: a {kind} is no user; give a SimulatedUser, or an object with "
            "generate_response(conversation_history)"
        )
    return Voice(
        lambda _, history: settled(generate(history)), getattr(user, "stop_token", STOP_TOKEN)
    )


def voice_of_declared(user: SimulatedUser) -> Voice:
    """Return the voice of what a SimulatedUser declares, from its first message on."""
    tally = Tally()
    return Voice(user._speak(tally), user.stop_token, tally)  # noqa: SLF001 - of this module


def _speaks_by_itself(user: SimulatedUser) -> bool:
    """Say whether its messages are those declared, and not those of a class of the test's."""
    return type(user).generate_response is SimulatedUser.generate_response


def _checked_text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"SimulatedUser.{name}: must be a text that is not empty, got {value!r}")
    return value


def _checked_count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            f"SimulatedUser.max_history_messages: must be a whole number, 1 or more, got {value!r}"
        )
    return value
