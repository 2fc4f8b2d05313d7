"""The check that is an evaluator of another library than pydantic-evals."""

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

from ci_agent_eval.checks.evaluator_base import BaseEvaluatorCheck, EvaluatorError
from ci_agent_eval.checks.exchanges import get_last_reply, get_user_texts
from ci_agent_eval.checks.formatting import format_value
from ci_agent_eval.contract.base import describe_unknown_key
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.model_traffic.attribution import record_uncounted


class EvaluatorScore(NamedTuple):
    """One score of an evaluator; a value that is no truth value or number is an error."""

    name: str
    value: object
    reason: str | None = None
    verdict: tuple[bool, float] | None = None
    """The library's verdict and its threshold; None: the value decides."""


@dataclass(frozen=True, slots=True)
class LibraryEvaluatorCheck(BaseEvaluatorCheck):
    """An evaluator of a library; see `from_evaluator`."""

    values: Mapping[str, Any] = field(default_factory=dict)

    @abstractmethod
    def _evaluate(self, episode: Episode) -> Any:
        """Return the evaluator's result, or an awaitable of it."""

    @abstractmethod
    def _read_scores(self, found: Any) -> Iterable[EvaluatorScore]:
        """Return the scores of a result."""

    def assertions(
        self, episode: Episode
    ) -> tuple[Assertion, ...] | Awaitable[tuple[Assertion, ...]]:
        """Return an assertion for each score; in async code an awaitable, if the evaluator waits.

        Raises EvaluatorError if the evaluator raises or gives no score, and InputError for a
        missing value or a number outside the scale.
        """
        with self._handle_errors():
            found = self._evaluate(episode)
        if not inspect.isawaitable(found):
            return self._convert_result(found)
        waiting = self._await_result(found)
        return waiting if is_loop_running() else asyncio.run(waiting)

    async def _await_result(self, awaitable: Awaitable[Any]) -> tuple[Assertion, ...]:
        with self._handle_errors():
            found = await awaitable
        return self._convert_result(found)

    @contextmanager
    def _handle_errors(self) -> Iterator[None]:
        """Convert exceptions of the evaluator, whose model calls are not the agent's."""
        try:
            with record_uncounted():
                yield
        except AgentEvalError:
            raise
        except Exception as error:
            raise EvaluatorError(f"evaluator {self._label}: {describe_error(error)}") from error

    def _convert_result(self, found: Any) -> tuple[Assertion, ...]:
        with self._handle_errors():
            scores = tuple(self._read_scores(found))
        if not scores:
            raise EvaluatorError(f"evaluator {self._label}: it returned no score")
        return tuple(map(self._convert_score, scores))

    def _convert_score(self, score: EvaluatorScore) -> Assertion:
        value, given = score.value, score.reason
        if isinstance(value, bool) and score.verdict is None:
            return self._build_assertion(score.name, value, given or str(value).lower())
        if not isinstance(value, Real):
            raise EvaluatorError(
                f"evaluator {self._label}: it returned {format_value(value)}, which is no score"
                f"{f': {given}' if given else ''}"
            )
        return self._convert_number(score.name, float(value), given, score.verdict)

    def _get_output(self, episode: Episode) -> Any:
        return get_last_reply(episode) if self.output is None else self.output

    def _get_inputs(self, episode: Episode) -> Any:
        return "\n\n".join(get_user_texts(episode)) if self.inputs is None else self.inputs

    def _merge_values(self, **given: Any) -> dict[str, Any]:
        """Return the given values and `values`, without those that are None."""
        return {name: one for name, one in {**given, **self.values}.items() if one is not None}

    def _require(self, names: Iterable[str], given: Collection[str], expected: str) -> None:
        """Raise InputError if a value is missing; `expected` is the library's `expected_output`."""
        missing = sorted(set(names) - set(given))
        if missing:
            ways = [
                "expected_output=…" if n == expected else f"values={{{n!r}: …}}" for n in missing
            ]
            raise InputError(
                f"evaluator {self._label}: it needs {', '.join(missing)}; give it, "
                f"from_evaluator(…, {', '.join(ways)})"
            )

    def _refuse_unknown(self, known: Collection[str]) -> None:
        """Raise InputError for a value that the evaluator would ignore."""
        for name in sorted(set(self.values) - set(known)):
            problem = describe_unknown_key(name, tuple(known))
            raise InputError(f"evaluator {self._label}: from_evaluator(…, values=…): {problem}")


def is_loop_running() -> bool:
    """Return whether the caller is async code."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
