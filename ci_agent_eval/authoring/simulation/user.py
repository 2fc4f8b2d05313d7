"""The simulated user: a persona, and the source of its messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from ci_agent_eval.authoring.simulation.awaiting import await_if_needed, run_sync
from ci_agent_eval.authoring.simulation.result import (
    STOP_TOKEN,
    History,
    UserMessage,
    fill_facts,
    parse_user_message,
)
from ci_agent_eval.authoring.simulation.script import (
    ScriptEntry,
    SimulationEnd,
    get_fixed_message,
    get_script_message,
    parse_responses,
    parse_script,
)
from ci_agent_eval.authoring.simulation.user_model import (
    UserCalls,
    ask_user_function,
    ask_user_model,
)
from ci_agent_eval.contract.episode import SideUsage
from ci_agent_eval.contract.fields import Count, NonBlankText, validate_value
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

_validate = partial(validate_value, "SimulatedUser")

MessageSource: TypeAlias = Callable[[int, History], Coroutine[Any, Any, Any]]
"""Returns a message by its number (from 0) in a conversation, or why there is none."""


class SimulatedUser:
    """A user of an app, played by fixed responses, a script, or a model.

    `fixed_responses` are used in order, in a cycle. A `script` is used once: texts, functions
    of the app's last reply, or rules (a regular expression, searched in that reply ignoring
    case, and a message). A `model` is a model of the engine ("openai:gpt-5-mini", or a
    `Provider`), or any sync or async function of persona and history. Responses and scripts
    take precedence over the model and are deterministic.

    `private_facts` (name to text) are known to this user only. A model's instructions have them
    with the rule when to say one; `{name}` in a given message stands for the fact.

    A message that contains the `stop_token` is the user's last; None turns that off. The token
    and the `goal` (a sentence) are part of a model's instructions. `max_history_messages`
    limits the messages in a model's prompt to the last ones.

    Raises InputError for invalid arguments.
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
        private_facts: Mapping[str, str] | None = None,
        stop_token: str | None = STOP_TOKEN,
        timeout_s: float | None = 60.0,
    ) -> None:
        self.persona = _validate("persona", NonBlankText, persona)
        self.model = model
        self.fixed_responses = parse_responses(fixed_responses or ())
        self.script = None if script is None else parse_script(script)
        self.max_history_messages: int | None = _validate(
            "max_history_messages", Count | None, max_history_messages
        )
        self.goal: str | None = _validate("goal", NonBlankText | None, goal)
        facts = _validate("private_facts", Mapping[NonBlankText, NonBlankText], private_facts or {})
        self.private_facts: Mapping[str, str] = dict(facts)
        self.stop_token: str | None = _validate("stop_token", NonBlankText | None, stop_token)
        self.timeout_s = timeout_s
        self._session: UserSession | None = None
        if self.fixed_responses and self.script is not None:
            raise InputError("SimulatedUser: give fixed_responses or a script, not both")
        if _is_declared_user(self):
            self._build_source(UserCalls())

    def generate_response(self, conversation_history: History) -> str:
        """Return the user's next message, as in Opik: fixed responses and scripts continue.

        `run_simulation` starts from the beginning each time. Subclasses may override this.
        Raises InputError if a script has ended.
        """
        if self._session is None:
            self._session = open_declared_session(self)
        message = run_sync(self._session.get_message(conversation_history))
        if isinstance(message, SimulationEnd):
            raise InputError(f"SimulatedUser: it has nothing more to say ({message.reason})")
        return message.text if not message.is_last else f"{message.text} {self.stop_token}".strip()

    def _build_source(self, calls: UserCalls) -> MessageSource:
        """Return the source of messages. Raises InputError if there is none."""
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
        return lambda _, history: ask(self, self._limit_history(history), calls)

    def _limit_history(self, history: History) -> History:
        limit = self.max_history_messages
        return history if limit is None else history[-limit:]


@dataclass
class UserSession:
    """A simulated user in one conversation."""

    source: MessageSource
    stop_token: str | None
    calls: UserCalls = field(default_factory=UserCalls)
    message_number: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def usage(self) -> SideUsage:
        """Usage of its model so far."""
        return self.calls.usage

    async def get_message(self, history: History) -> UserMessage | SimulationEnd:
        """Return the next message. Raises SimulatedUserError if its model fails."""
        message = await self.source(self.message_number, history)
        self.message_number += 1
        if message is None or isinstance(message, SimulationEnd):
            return message or SimulationEnd("script_ended")
        if not isinstance(message, str):
            kind = type(message).__name__
            raise InputError(f"the simulated user said a {kind}; it has to return a text")
        return self.parse_message(message)

    def parse_message(self, text: str) -> UserMessage:
        """Parse a message of the user, with facts in place of their names."""
        return parse_user_message(fill_facts(text, self.facts), self.stop_token)


def open_user_session(user: object) -> UserSession:
    """Open the session of a SimulatedUser, a subclass, or an object with Opik's interface.

    Raises InputError for other objects.
    """
    if isinstance(user, SimulatedUser) and _is_declared_user(user):
        return open_declared_session(user)
    generate = getattr(user, "generate_response", None)
    if not callable(generate):
        kind = type(user).__name__
        raise InputError(
            f"run_simulation: a {kind} is not a user; give a SimulatedUser, or an object with "
            "generate_response(conversation_history)"
        )
    return UserSession(
        lambda _, history: await_if_needed(generate(history)),
        getattr(user, "stop_token", STOP_TOKEN),
    )


def open_declared_session(user: SimulatedUser) -> UserSession:
    """Open the session of a SimulatedUser, from its first message on."""
    calls = UserCalls()
    source = user._build_source(calls)  # noqa: SLF001 - of this module
    return UserSession(source, user.stop_token, calls, facts=user.private_facts)


def _is_declared_user(user: SimulatedUser) -> bool:
    """Return whether the user's class does not override `generate_response`."""
    return type(user).generate_response is SimulatedUser.generate_response
