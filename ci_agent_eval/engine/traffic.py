"""The model traffic of an agent that runs: watched, stopped at limits, and read at its end.

The record does not depend on the agent: whatever its framework makes of a refusal or an error, the
recorder knows which calls were refused, failed or answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from ci_agent_eval.contract.episode import Instructions, TrafficSummary
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.stops import Stop, find_stop_cause
from ci_agent_eval.contract.trajectory import TrajectoryAgent, Turn
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.engine.limits import Clock, RunLimits, find_exceeded_limit
from ci_agent_eval.engine.rate_limits import RateWindows
from ci_agent_eval.engine.stops import describe_own_error
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import (
    KnownPrompt,
    find_usable_answer,
    is_failed,
)
from ci_agent_eval.model_traffic.instructions import list_instructions
from ci_agent_eval.model_traffic.messages import ModelAnswer
from ci_agent_eval.model_traffic.pricing import CallPrice, get_price_table, price_call
from ci_agent_eval.model_traffic.recorder import (
    ENDED_EARLY,
    ModelCall,
    TrafficRecorder,
)
from ci_agent_eval.model_traffic.trajectory import (
    MAX_NAME_CHARACTERS,
    CallUsageCounter,
    ComputeCost,
    TrafficTurn,
    TrajectoryReader,
    limit_text,
)
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import is_owner_thread
from ci_agent_eval.recording.recorded_turns import lack_measurement
from ci_agent_eval.recording.traffic import EpisodeTraffic, merge_reply

_CONTEXT_OVERFLOWS = (
    b"context_length_exceeded",  # OpenAI
    b"prompt is too long",  # Anthropic
    b"input token count",  # Gemini
    b"Input is too long",  # Bedrock
)
"""Parts of error answers to a request that does not fit the model."""

_TURN_LIMITS = frozenset({"MaxTurnsExceeded", "GraphRecursionError", "AgentMaxStepsError"})
"""Exceptions of frameworks whose own limit of turns was reached."""

_REPORTS_OF_FAILED_CALLS = frozenset({"completed", "model_error", "agent_error", "empty_answer"})
"""Stops that a framework may report if the model did not answer."""

FIRST_PAUSE_S = 0.5
"""Pause of the calls to an address after status 429 that names none."""
MAX_PAUSE_S = 120.0
"""Longest pause of the calls to an address after status 429."""
MAX_ERROR_CHARACTERS = 500
"""Characters kept of a provider's error message."""


_prices: WeakKeyDictionary[ModelCall, CallPrice | None] = WeakKeyDictionary()


def find_price(call: ModelCall) -> CallPrice | None:
    """Return the price of an ended call; None: unknown, or without the price table installed."""
    if call.state == "open":
        return None
    if call not in _prices:
        try:
            _prices[call] = price_call(call)
        except ImportError:
            _prices[call] = None
    return _prices[call]


def set_call_cost(
    call: ModelCall, cost_usd: float | None, *, is_vendor_price: bool = False
) -> None:
    """Set the cost of a call that is known without its traffic; None: unknown."""
    model = (call.answer and call.answer.model) or ""
    _prices[call] = None if cost_usd is None else CallPrice(cost_usd, model, is_vendor_price)


def compute_call_cost(call: ModelCall) -> float | None:
    """Return the cost of a call in US dollars; None: unknown."""
    price = find_price(call)
    return None if price is None else price.cost_usd


def find_traffic_stop(limits: RunLimits, usage: Usage, open_calls: int = 0) -> Stop | None:
    """Return the stop of the first limit that is exceeded, or that an open call would exceed."""
    if limits.max_turns is not None and usage.turns + open_calls > limits.max_turns:
        return Stop("max_turns", f"it was not done after {limits.max_turns} turns", needs_turn=True)
    return find_exceeded_limit(limits, usage)


@dataclass(eq=False)
class LimitCheck:
    """Refuses model calls from the first exceeded limit on; `stop` then says which it is."""

    find_stop: Callable[[], Stop | None]
    stop: Stop | None = None

    def __call__(self, _: TrafficRecorder) -> str | None:
        """Return the reason to refuse a call, if any."""
        self.stop = self.stop or self.find_stop()
        if self.stop is None:
            return None
        return f"refused by ci_agent_eval, over budget ({self.stop.reason}): {self.stop.error}"


@contextmanager
def watch_traffic(recorder: TrafficRecorder) -> Iterator[None]:
    """Record the model calls of the `with` block."""
    hooks.install()
    attribution.add_running(recorder)
    try:
        with attribution.use_recorder(recorder):
            yield
    finally:
        attribution.remove_running(recorder)
        hooks.uninstall()


@dataclass(eq=False)
class TrafficRates:
    """The rate limits of model APIs: after status 429 all calls to the address wait."""

    windows: Callable[[str], RateWindows] | None = None
    """Returns the windows of an address, shared between runs; None: calls wait for nothing."""
    rate_limited: int = 0
    """Answers with status 429."""

    def get_wait_s(self, call: ModelCall) -> float:
        """Return the seconds that a call must wait."""
        if self.windows is None or not call.url:  # the address is known below PydanticAI
            return 0.0
        entry_or_wait = self.windows(_get_origin(call)).take(0)
        return entry_or_wait if isinstance(entry_or_wait, float) else 0.0

    def note_answer(self, call: ModelCall) -> None:
        """Pause the calls to an address that answered with status 429."""
        if call.status != HTTPStatus.TOO_MANY_REQUESTS or call.source != "live":
            return
        self.rate_limited += 1
        if self.windows is not None:
            retry_after = min(_parse_retry_after(call), MAX_PAUSE_S)
            self.windows(_get_origin(call)).pause(retry_after)


def _get_origin(call: ModelCall) -> str:
    address = urlsplit(call.url)
    return f"{address.scheme}://{address.netloc}"


def _parse_retry_after(call: ModelCall) -> float:
    """Return the seconds after which the provider accepts calls again; a date counts as unset."""
    try:
        return max(float(call.headers["retry-after"]), 0.0)
    except (KeyError, ValueError):
        return FIRST_PAUSE_S


@dataclass(eq=False)
class RunTraffic:
    """The model traffic of one run of an agent."""

    clock: Clock
    prompt: str
    limits: RunLimits
    rates: TrafficRates = field(default_factory=TrafficRates)
    on_answer: Callable[[], None] = lambda: None
    """Called after each call, in the thread that made it."""
    compute_cost: ComputeCost = compute_call_cost
    trajectory_reader: TrajectoryReader = field(default_factory=TrajectoryReader)
    """Has read the earlier runs of the episode, whose conversations this one may continue."""
    complete_turn: Callable[[TrafficTurn], Iterable[Turn]] = lambda seen: (seen.turn,)
    """Returns a turn with the data that its traffic lacks."""
    output_tools: set[str] = field(default_factory=set)
    """Tools that carry the agent's typed output, and so are not counted."""
    recorder: TrafficRecorder = field(init=False)
    known_prompt: KnownPrompt = field(init=False)
    _check: LimitCheck = field(init=False)
    _counter: CallUsageCounter = field(init=False)

    def __post_init__(self) -> None:
        self.known_prompt = KnownPrompt(self.prompt)
        self._counter = CallUsageCounter(self.compute_cost, self.output_tools)
        self._check = LimitCheck(self.find_limit_stop)
        self.recorder = TrafficRecorder(
            self.clock,
            check_limits=self._check,
            get_wait_s=self.rates.get_wait_s,
            on_call_ended=self._note_answer,
        )

    def _note_answer(self, call: ModelCall) -> None:
        self.rates.note_answer(call)
        self.on_answer()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Record the model calls of the `with` block."""
        with watch_traffic(self.recorder):
            yield

    @contextmanager
    def record_tool(self, call_id: str | None) -> Iterator[TrafficRecorder]:
        """Record the model calls of the `with` block as those of a tool call."""
        part = self.recorder.create_part(call_id)
        with attribution.use_recorder(part):
            yield part

    @property
    def calls(self) -> Sequence[ModelCall]:
        """The model calls so far."""
        return self.recorder.calls

    @property
    def has_traffic(self) -> bool:
        """Whether a call was seen on its way to a model, and so can be recorded and replayed."""
        return any(call.url for call in self.calls)

    def list_instructions(self) -> tuple[Instructions, ...]:
        """Return the instructions of the run's agents, and the descriptions of their tools."""
        return list_instructions(self.calls)

    @property
    def usage(self) -> Usage:
        """The usage of the run so far."""
        return self._count(with_cost=True)

    def _count(self, *, with_cost: bool) -> Usage:
        return self._counter.count(self.calls, with_cost=with_cost)

    def find_limit_stop(self, open_requests: int = 0) -> Stop | None:
        """Return the limit that is exceeded, or would be with this number of further requests."""
        open_calls = sum(call.state == "open" for call in self.calls) + open_requests
        used = self._count(with_cost=self.limits.cost_usd is not None)
        return find_traffic_stop(self.limits, used, open_calls)

    def find_unfinished_stop(self) -> Stop | None:
        """Return the stop of a last answer that is empty, refused or cut; else None."""
        answers = filter(None, map(find_usable_answer, reversed(self.calls)))
        return next((find_stop_cause(_build_answer_turn(answer)) for answer in answers), None)

    def merge_turns(self, own: Sequence[Turn]) -> tuple[Sequence[Turn], Sequence[TrajectoryAgent]]:
        """Return the turns of the run and its agents: the adapter's, completed by the traffic.

        An adapter that has measured its turns keeps them; of others the final text is kept.
        """
        found = self.trajectory_reader.read(
            self.recorder.calls,
            find_prompt=lambda _: self.known_prompt,
            compute_cost=self.compute_cost,
        )
        seen = [turn for one in found.turns for turn in self.complete_turn(one)]
        answers = [turn for turn in seen if turn.role == "assistant"]
        replies = [turn for turn in own if turn.role == "assistant"]
        if not answers:
            return own, ()
        if not replies:
            return [*seen, *own], found.agents
        if len(replies) > 1 and (_is_measured(replies) or len(replies) > len(answers)):
            return own, ()
        if _is_measured(replies):
            return [merge_reply(replies[0], answers)], ()
        failed = self._find_failed_call()
        if self._check.stop is None and failed is None:
            return _set_final_text(seen, replies[-1]), found.agents
        return seen, found.agents  # the last reply is about the refusal or the error

    def find_stop(self, stop: Stop) -> Stop:
        """Return why the run ended, by the recorder's state before the agent's own report."""
        if self._check.stop is not None:
            return self._check.stop
        failed = self._find_failed_call()
        if failed is None or stop.reason not in _REPORTS_OF_FAILED_CALLS:
            return stop
        return _describe_failed_call(failed)

    def classify_error(self, error: Exception) -> Stop | None:
        """Return the stop of an exception after the model had answered; None if it had not."""
        if not self.recorder.calls or self._find_failed_call() is not None:
            return None
        if {kind.__name__ for kind in type(error).__mro__} & _TURN_LIMITS:
            return Stop("max_turns", f"its own limit was reached: {describe_error(error)}")
        return Stop("agent_error", f"the agent's own code raised: {describe_own_error(error)}")

    def summarize(self, turns: Sequence[Turn]) -> TrafficSummary | None:
        """Count the model calls of the run, as `summarize_traffic`."""
        return summarize_traffic(self.recorder, self.calls, turns)

    def refuse_calls(self, reason: str) -> None:
        """Refuse all further calls, such as those of a thread that cannot be stopped."""
        self.recorder.refusal = self.recorder.refusal or f"refused by ci_agent_eval: {reason}"

    def _find_failed_call(self) -> ModelCall | None:
        """Return the last call if it has no complete answer."""
        return _find_failed_last_call(self.calls)


def _build_answer_turn(answer: ModelAnswer) -> Turn:
    return Turn(
        role="assistant",
        content=answer.text,
        tool_calls=answer.tool_calls,
        finish_reason=answer.finish_reason,
    )


def _find_failed_last_call(calls: Iterable[ModelCall]) -> ModelCall | None:
    """Return the last call that was not refused if it has no complete answer."""
    sent = [call for call in calls if call.state != "refused"]
    return sent[-1] if sent and is_failed(sent[-1]) else None


def _is_measured(turns: Sequence[Turn]) -> bool:
    return any(
        turn.tokens is not None or turn.cost_usd is not None or turn.tool_calls for turn in turns
    )


def _set_final_text(seen: Sequence[Turn], reply: Turn) -> Sequence[Turn]:
    """Return the turns with the agent's final text and typed output in the last answer."""
    last = max(place for place, turn in enumerate(seen) if turn.role == "assistant")
    update = {"typed_output": reply.typed_output} if reply.typed_output is not None else {}
    if reply.content:
        update["content"] = reply.content
    return [*seen[:last], seen[last].model_copy(update=update), *seen[last + 1 :]]


def _describe_failed_call(call: ModelCall) -> Stop:
    """Return the stop of a call without a complete answer: mostly an infrastructure error."""
    answer = call.answer
    text = (answer.error if answer is not None else None) or call.error or "it gave no answer"
    message = limit_text(text, MAX_ERROR_CHARACTERS)
    if call.error == ENDED_EARLY and find_usable_answer(call) is not None:
        return Stop("truncated", "its answer ended without a finish reason or an end mark")
    if (call.status or 0) < HTTPStatus.BAD_REQUEST and find_usable_answer(call) is not None:
        return Stop("model_error", f"the model's API broke off its answer: {message}")
    if (call.status or 0) < HTTPStatus.BAD_REQUEST:
        return Stop("model_error", f"the model's API gave no answer: {message}")
    if any(part in b"".join(call.chunks) for part in _CONTEXT_OVERFLOWS):
        return Stop("context_window", f"the request no longer fits the model: {message}")
    return Stop("model_error", f"the model's API answered with status {call.status}: {message}")


def list_offered_tools(calls: Iterable[ModelCall]) -> tuple[str, ...]:
    """Return the names of the tools that the requests offer."""
    requests = (call.request for call in calls)
    return tuple(sorted({tool.name for one in requests if one is not None for tool in one.tools}))


def summarize_traffic(
    recorder: TrafficRecorder,
    calls: Sequence[ModelCall],
    turns: Sequence[Turn],
) -> TrafficSummary | None:
    """Count the model calls of a run or of a test's own code, without those of scripts.

    None: there were none, and the turns have their tokens from elsewhere.
    """
    calls = [call for call in calls if call.source != "scripted"]
    unattributed = attribution.count_unattributed(recorder)
    if not calls and not unattributed and not lack_measurement(turns):
        return None
    answers = {call: find_usable_answer(call) for call in calls}
    unanswered = [call for call in calls if answers[call] is None]
    prices = {call: find_price(call) for call in calls}
    unpriced = [
        answer.model or (call.request and call.request.model) or "unknown"
        for call in calls
        if (answer := answers[call]) and answer.tokens and prices[call] is None
    ]
    by_vendor = [price.model for price in prices.values() if price and price.is_vendor_price]
    return TrafficSummary(
        requests=len(calls),
        refused=sum(call.state == "refused" for call in calls),
        failed=sum(call.state != "refused" for call in unanswered),
        replayed=sum(call.source == "replayed" for call in calls),
        unattributed=unattributed,
        is_shared=recorder.is_shared,
        unpriced_models=_list_names(unpriced),
        vendor_priced_models=_list_names(by_vendor),
    )


def _list_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({limit_text(name, MAX_NAME_CHARACTERS) for name in names}))


def watch_episode(recorder: EpisodeRecorder, clock: Clock, rates: TrafficRates) -> EpisodeTraffic:
    """Let the model calls of a test's own code become turns, within the episode's budgets."""

    def find_stop() -> Stop | None:
        limits = RunLimits.from_budgets(recorder.budgets)
        has_limit = limits.cost_usd is not None
        used = traffic.measure_usage(recorder.recorded_turns.parts, with_cost=has_limit)
        return find_traffic_stop(limits, *used)

    def find_call_stop(made: Sequence[ModelCall]) -> Stop | None:
        failed = _find_failed_last_call(made)
        if failed is None or (failed.state == "open" and failed.status is None):
            return None
        return _describe_failed_call(failed)

    def list_conditions() -> Mapping[str, object]:
        is_priced = any(compute_call_cost(call) is not None for call in calls.calls)
        return {
            "tools": list_offered_tools(calls.calls) or None,
            "prices": get_price_table() if is_priced else None,
            "instructions": list_instructions(calls.calls),
        }

    def note_answer(call: ModelCall) -> None:
        rates.note_answer(call)
        if is_owner_thread():  # a stop of the suite acts on this thread
            recorder.report_spending()

    check = LimitCheck(find_stop)
    calls = TrafficRecorder(
        clock,
        check_limits=check,
        get_wait_s=rates.get_wait_s,
        on_call_ended=note_answer,
    )
    traffic = EpisodeTraffic(
        calls,
        compute_call_cost,
        lambda: check.stop,
        find_call_stop,
        lambda turns: summarize_traffic(calls, calls.calls, turns),
        list_conditions,
    )
    recorder.recorded_turns.traffic = traffic
    return traffic
