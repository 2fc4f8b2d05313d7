"""The recorder of one turn: tool calls, the reply, the latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypedDict

from ci_agent_eval.contract.jsonable import clean_text, remove_addresses, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import Stop, StopReason, find_stop_cause
from ci_agent_eval.contract.trajectory import (
    Attachment,
    CallSource,
    TokenUsage,
    ToolCall,
    Turn,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.budgets import Clock, build_value, note_refusals

Tokens = int | TokenUsage | Mapping[str, int] | None
"""A total, or its parts: `{"input": 120, "output": 30, "cached": 0}`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's answer to one message."""

    text: str = ""
    tool_calls: Sequence[ToolCall | Mapping[str, Any]] = ()
    """The calls it made: `name` and optional `id`, `arguments`, `result` or `error`."""
    usage: Tokens = None
    """Tokens `input`, `output` and `cached` (part of `input`); None: not measured."""
    cost_usd: float | None = None
    stop_reason: StopReason = "completed"
    error: str | None = None
    """Description of a stop other than `completed`."""
    finish_reason: str | None = None
    """The provider's reason why the model stopped: `stop`, `length`, `content_filter`, ..."""
    output: Any = None
    """The answer as a value, for an agent with a typed output."""
    source: CallSource = "live"

    @property
    def stop(self) -> Stop | None:
        """Why the run ended without an answer; None if it did not."""
        is_completed = self.stop_reason == "completed"
        return None if is_completed else Stop(self.stop_reason, self.error or "")


MAX_ERROR_CHARACTERS = 2000
"""Characters kept of an exception that the agent raised."""


class ToolCallDetails(TypedDict, total=False):
    """Optional keywords of `TurnRecorder.tool_call`."""

    id: str | None
    duration_ms: float | None
    steered_by: str | None


class TurnRecorder:
    """Records one exchange: the user's message, the agent's tool calls and its reply.

    The message is None if the agent speaks first. Used as a context manager. Latency runs from
    the start of the block to the reply, or to the end of the block if there is no reply.
    """

    def __init__(
        self,
        message: str | None,
        clock: Clock,
        keep: Callable[[TurnRecorder, list[Turn], Stop | None], None],
        attachments: Sequence[Attachment] = (),
        *,
        refused: list[str] | None = None,
    ) -> None:
        self.refused = [] if refused is None else refused
        self._user: Turn | None = None
        if message is not None:
            fields = {"content": clean_text(message), "attachments": attachments}
            self._user = build_value("turn", Turn, role="user", **fields)
        self._clock = clock
        self._keep = keep
        self._started: float | None = None
        self._tool_calls: list[ToolCall] = []
        self._reply: Turn | None = None
        self._error_turn: Turn | None = None
        self._stop: Stop | None = None

    @note_refusals
    def tool_call(
        self,
        name: str,
        arguments: object = None,
        result: object = None,
        error: str | BaseException | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the contract's name
        duration_ms: float | None = None,
        steered_by: str | None = None,
    ) -> None:
        """Record a tool call of the agent; arguments and result may be any value.

        `steered_by` names the handler that held the call back; `result` is then the message
        that the agent got in its place.
        """
        call = build_value(
            f"tool call {name!r}",
            ToolCall,
            id=id,
            name=clean_text(name),
            arguments=to_jsonable(arguments),
            result=to_jsonable(result),
            error=None if error is None else clean_text(_render_error(error)),
            duration_ms=duration_ms,
            steered_by=None if steered_by is None else clean_text(steered_by),
        )
        self._tool_calls.append(call)

    @note_refusals
    def reply(
        self,
        text: str,
        *,
        tokens: Tokens = None,
        cost_usd: float | None = None,
        source: CallSource = "live",
        latency_ms: float | None = None,
        finish_reason: str | None = None,
        stop: Stop | None = None,
    ) -> None:
        """Record the agent's answer with its tokens and cost.

        `tokens` is a total or its parts (`{"input": 120, "output": 30}`); `source` is the
        origin of the answer: a model (live), a cassette (replayed) or a script (scripted).
        `latency_ms` replaces the measured time. `finish_reason` is the provider's reason why
        the model stopped: a filtered or truncated answer fails the episode, and so does a
        `stop` that is an agent failure.
        """
        if self._reply is not None:
            raise InputError("turn: it has a reply already; open another turn for the next one")
        self._reply = build_value(
            "reply",
            Turn,
            role="assistant",
            content=clean_text(text),
            tokens=_parse_tokens(tokens),
            cost_usd=cost_usd,
            source=source,
            latency_ms=self._elapsed_ms() if latency_ms is None else latency_ms,
            finish_reason=None if finish_reason is None else clean_text(finish_reason),
        )
        cut_off = None if finish_reason is None else find_stop_cause(self._reply)
        # Only the provider's reason counts: a turn recorded by hand may be silent.
        is_silent = cut_off is not None and cut_off.reason == "empty_answer"
        self._stop = stop or (None if is_silent else cut_off)

    def record_error(self, error: BaseException) -> None:
        """Record the exception that the agent raised instead of an answer, and its latency.

        It becomes a turn of role `system`: the agent said nothing, and took no turn.
        """
        text = remove_addresses(clean_text(_render_error(error).removesuffix(": ")))
        self._error_turn = Turn(
            role="system",
            content=f"the agent raised {text[:MAX_ERROR_CHARACTERS]}",
            latency_ms=self._elapsed_ms(),
        )

    def __enter__(self) -> Self:
        self._started = self._clock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(broken=error is not None)

    @property
    def message(self) -> str | None:
        """The user's message; None if the agent speaks first."""
        return None if self._user is None else self._user.content

    @property
    def is_entered(self) -> bool:
        """Whether the turn was opened with `with`."""
        return self._started is not None

    @property
    def has_reply(self) -> bool:
        """Whether the test gave a reply or tool calls of the agent."""
        return self._reply is not None or bool(self._tool_calls)

    def close(self, *, broken: bool) -> None:
        """Hand over the turns; one that broke before any action has only the prompt."""
        turns = [] if self._user is None else [self._user]
        if self.has_reply or not broken:
            answer = self._reply or Turn(role="assistant", latency_ms=self._elapsed_ms())
            turns.append(answer.model_copy(update={"tool_calls": tuple(self._tool_calls)}))
        turns += [] if self._error_turn is None else [self._error_turn]
        self._keep(self, turns, self._stop)

    def _elapsed_ms(self) -> float | None:
        """Return the rounded milliseconds since the block began; None before it began."""
        return None if self._started is None else convert_to_ms(self._clock() - self._started)


def _parse_tokens(tokens: Tokens) -> TokenUsage | None:
    """Parse token counts; a single number is a total, kept as output."""
    if tokens is None or isinstance(tokens, TokenUsage):
        return tokens
    counts = dict(tokens) if isinstance(tokens, Mapping) else {"output": tokens}
    return build_value("tokens", TokenUsage, **counts)


def _render_error(error: str | BaseException) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
