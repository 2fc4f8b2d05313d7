"""Evaluators of DeepEval, ragas, autoevals, openevals and agentevals as checks."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from ci_agent_eval.checks.exchanges import get_tool_calls, get_turns, split_exchanges
from ci_agent_eval.checks.library_check import (
    EvaluatorScore,
    LibraryEvaluatorCheck,
    is_loop_running,
)
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.errors import InputError


class DeepEvalCheck(LibraryEvaluatorCheck):
    """A metric of DeepEval, of one answer or of a conversation; it passes by its threshold."""

    __slots__ = ()

    @property
    def _label(self) -> str:
        return str(self.evaluator.__name__)

    async def _evaluate(self, episode: Episode) -> Any:
        metric = copy.copy(self.evaluator)  # it holds its result: episodes may share the original
        if self.threshold is not None:
            metric.threshold = self.threshold
        case = self._build_case(
            episode, is_conversation="BaseConversationalMetric" in _bases(metric)
        )
        try:
            if not metric.async_mode:
                metric.measure(case)
            elif "_show_indicator" in inspect.signature(metric.a_measure).parameters:
                await metric.a_measure(case, _show_indicator=False)
            else:
                await metric.a_measure(case)
        except Exception as error:
            if type(error).__name__ != "MissingTestCaseParamsError":
                raise
            raise InputError(
                f"evaluator {self._label}: {error}; give it, from_evaluator(…, expected_output=…) "
                "or from_evaluator(…, values={…})"
            ) from error
        return metric

    def _build_case(self, episode: Episode, *, is_conversation: bool) -> Any:
        cases, expected = import_module("deepeval.test_case"), _to_text(self.expected_output)
        given: dict[str, Any]
        if is_conversation:
            kind, turns = cases.ConversationalTestCase, list(_build_turns(cases, episode))
            given = {"turns": turns, "expected_outcome": expected}
        else:
            kind, called = cases.LLMTestCase, _build_calls(cases, get_tool_calls(episode))
            given = {
                "input": _to_text(self._get_inputs(episode)),
                "actual_output": _to_text(self._get_output(episode)),
                "expected_output": expected,
                "tools_called": called,
            }
        self._refuse_unknown(kind.model_fields)
        return kind(**self._merge_values(metadata=self.metadata, **given))

    def _read_scores(self, found: Any) -> Iterable[EvaluatorScore]:
        limit = found.threshold
        verdict = None if limit is None else (bool(found.is_successful()), float(limit))
        return [EvaluatorScore(self._label, found.score, found.reason, verdict)]


def _build_turns(cases: Any, episode: Episode) -> Iterator[Any]:
    for exchange in split_exchanges(episode):
        for text in exchange.user_texts:
            yield cases.Turn(role="user", content=text)
        if exchange.turns:
            called = _build_calls(cases, exchange.calls) or None
            yield cases.Turn(role="assistant", content=exchange.reply, tools_called=called)


def _build_calls(cases: Any, calls: Iterable[ToolCall]) -> list[Any]:
    return [
        cases.ToolCall(name=call.name, input_parameters=_get_arguments(call), output=_get_end(call))
        for call in calls
    ]


class RagasCheck(LibraryEvaluatorCheck):
    """A metric of ragas, of samples or of its collections."""

    __slots__ = ()

    def _evaluate(self, episode: Episode) -> Any:
        metric = copy.copy(self.evaluator)
        bases = _bases(metric)
        if "SingleTurnMetric" in bases:
            return metric.single_turn_ascore(self._build_sample("SingleTurn", metric, episode))
        if "MultiTurnMetric" in bases:
            return metric.multi_turn_ascore(self._build_sample("MultiTurn", metric, episode))
        return metric.ascore(**self._build_arguments(metric, episode))

    def _build_sample(self, kind: str, metric: Any, episode: Episode) -> Any:
        sample = getattr(import_module("ragas.dataset_schema"), f"{kind}Sample")
        self._refuse_unknown(sample.model_fields)
        given = self._get_given(episode, has_messages=kind == "MultiTurn")
        column = {"SingleTurn": "SINGLE_TURN", "MultiTurn": "MULTI_TURN"}[kind]
        self._require(metric.required_columns.get(column, ()), given, "reference")
        return sample(**{name: given[name] for name in sample.model_fields if name in given})

    def _build_arguments(self, metric: Any, episode: Episode) -> dict[str, Any]:
        """Return the arguments of `ascore`, or of the function that a decorator made a metric."""
        accepted, required, takes_any = _inspect(getattr(metric, "_func", None) or metric.ascore)
        if not takes_any:
            self._refuse_unknown(accepted)
        has_messages = "Message" in str(accepted.get("user_input", ""))
        given = self._get_given(episode, has_messages=has_messages)
        self._require(required, given, "reference")
        return {name: given[name] for name in given if takes_any or name in accepted}

    def _get_given(self, episode: Episode, *, has_messages: bool) -> dict[str, Any]:
        inputs = self._get_inputs(episode)
        return self._merge_values(
            user_input=_build_ragas_messages(episode) if has_messages else _to_text(inputs),
            response=_to_text(self._get_output(episode)),
            reference=_to_text(self.expected_output),
        )

    def _read_scores(self, found: Any) -> Iterable[EvaluatorScore]:
        value, reason = getattr(found, "value", found), getattr(found, "reason", None)
        return [EvaluatorScore(self._label, value, reason)]


def _build_ragas_messages(episode: Episode) -> list[Any]:
    library, messages = import_module("ragas.messages"), []
    for turn in get_turns(episode):
        if turn.role == "user":
            messages.append(library.HumanMessage(content=turn.content))
        elif turn.role == "assistant":
            calls = [
                library.ToolCall(name=call.name, args=_get_arguments(call))
                for call in turn.tool_calls
            ]
            messages.append(library.AIMessage(content=turn.content, tool_calls=calls or None))
            ends = map(_get_end, turn.tool_calls)
            messages += [library.ToolMessage(content=end) for end in ends if end is not None]
    return messages


class AutoevalsCheck(LibraryEvaluatorCheck):
    """A scorer of autoevals."""

    __slots__ = ()

    def _evaluate(self, episode: Episode) -> Any:
        scorer = self.evaluator
        given = self._merge_values(
            input=self._get_inputs(episode),
            output=self._get_output(episode),
            expected=self.expected_output,
            metadata=self.metadata,
        )
        preset = {**getattr(scorer, "_partial_args", dict)(), **getattr(scorer, "render_args", {})}
        self._require(_get_required(scorer), {**preset, **given}, "expected")
        return (scorer.eval_async if is_loop_running() else scorer.eval)(**given)

    def _read_scores(self, found: Any) -> Iterable[EvaluatorScore]:
        notes = found.metadata or {}
        reason = notes.get("rationale") or (_format_json(notes) if notes else None)
        return [EvaluatorScore(found.name, found.score, reason)]


_VARIABLE = re.compile(r"\{\{\{?&?\s*(\w+)")
"""A variable of a Mustache template; a missing one would be rendered as an empty text."""
_COMPARING = {f"autoevals.{name}" for name in ("json", "list", "number", "string", "value")}
"""Modules of scorers that compare with an expected value; `ExactMatch` would take None for one."""


def _get_required(scorer: Any) -> set[str]:
    """Return the names of the values that a scorer of the library needs."""
    templates = [message["content"] for message in getattr(scorer, "messages", ())]
    if templates:
        return {name for text in templates for name in _VARIABLE.findall(text)}
    method = scorer._run_eval_sync  # noqa: SLF001 - the method that a scorer defines
    accepted, _, _ = _inspect(method)
    return {"expected"} if method.__module__ in _COMPARING and "expected" in accepted else set()


class OpenEvalsCheck(LibraryEvaluatorCheck):
    """An evaluator of openevals or agentevals, which is a function."""

    __slots__ = ()

    @property
    def _label(self) -> str:
        """The function that made the evaluator, or its name."""
        return str(self.evaluator.__qualname__).partition(".")[0]

    def _evaluate(self, episode: Episode) -> Any:
        if self.evaluator.__name__.startswith("create_"):
            raise InputError(f"{self._label}: it makes an evaluator; call it, {self._label}(…)")
        has_messages = self.output is None and ".trajectory" in self.evaluator.__module__
        messages = list(build_openai_messages(episode)) if has_messages else None
        given = self._merge_values(
            inputs=self._get_inputs(episode),
            outputs=messages or self._get_output(episode),
            reference_outputs=self.expected_output,
        )
        accepted, required, _ = _inspect(self.evaluator)
        self._require(required, given, "reference_outputs")
        names = [name for name in given if name in accepted or name in self.values]
        return self.evaluator(**{name: given[name] for name in names})

    def _read_scores(self, found: Any) -> Iterable[EvaluatorScore]:
        for one in found if isinstance(found, list) else [found]:
            yield EvaluatorScore(one["key"], one["score"], one.get("comment"))


def build_openai_messages(episode: Episode) -> Iterator[dict[str, Any]]:
    """Yield the conversation as messages of OpenAI's chat completions."""
    for number, turn in enumerate(get_turns(episode), start=1):
        if turn.role == "tool":
            continue  # the calls have their results
        ids = [call.id or f"call_{number}_{n}" for n, call in enumerate(turn.tool_calls, start=1)]
        made = list(zip(ids, turn.tool_calls, strict=True))
        calls = [
            {
                "id": identity,
                "type": "function",
                "function": {"name": call.name, "arguments": _format_json(_get_arguments(call))},
            }
            for identity, call in made
        ]
        yield {
            "role": turn.role,
            "content": turn.content,
            **({"tool_calls": calls} if calls else {}),
        }
        for identity, call in made:
            if (end := _get_end(call)) is not None:
                yield {"role": "tool", "tool_call_id": identity, "content": end}


def _bases(value: object) -> set[str]:
    return {kind.__name__ for kind in type(value).__mro__}


def _inspect(function: Any) -> tuple[dict[str, Any], set[str], bool]:
    """Return the parameters with their annotations, the required ones, and if any are taken."""
    parameters = inspect.signature(function).parameters.values()
    named = [one for one in parameters if one.kind is not one.VAR_KEYWORD]
    required = {one.name for one in named if one.default is one.empty}
    return {one.name: one.annotation for one in named}, required, len(named) < len(parameters)


def _to_text(value: Any) -> str | None:
    """Return a text as it is, and other values but None as JSON."""
    return value if value is None or isinstance(value, str) else _format_json(value)


def _format_json(value: Any) -> str:
    return json.dumps(to_jsonable(value), ensure_ascii=False)


def _get_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call as a mapping; invalid ones under the key `arguments`."""
    given = call.arguments
    return given if isinstance(given, dict) else {} if given is None else {"arguments": given}


def _get_end(call: ToolCall) -> str | None:
    """Return the result of a call, or its error, as a text; None while it is open."""
    return call.error if call.error is not None else _to_text(call.result)
