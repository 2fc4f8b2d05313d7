"""Holding and restoring calls in answers that are lists of parts: content blocks and items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.model_traffic.formats.json_values import Json, get_text
from ci_agent_eval.steering.proxy.dialect import HeldAnswer, HeldCall


@dataclass(frozen=True, slots=True)
class PartRules:
    """How the parts of one API are read and answered."""

    get_call_id: Callable[[Json], str | None]
    """Returns the id of a call for the client; None for other parts."""
    get_keys: Callable[[Json], frozenset[str]]
    """Returns the texts by which a part is found again: a client may drop some of them."""
    build_result: Callable[[Json, str], Json]
    """Returns the result of a call."""


@dataclass(frozen=True, slots=True)
class RestoredAnswer:
    """The parts of one answer, and the results that the model got for its held calls."""

    parts: list[Json]
    results: list[Json]


def collect_keys(part: Json, *names: str) -> frozenset[str]:
    """Return the texts of a part under these names, without blanks around them."""
    return frozenset(text.strip() for name in names if (text := get_text(part, name)))


def hold_parts(
    parts: Sequence[Json], messages: Mapping[str, str], rules: PartRules
) -> tuple[list[Json], HeldAnswer]:
    """Return the parts without the calls with a message, and what has to be remembered."""
    shown: list[Json] = []
    held: list[HeldCall] = []
    for part in parts:
        message = messages.get(rules.get_call_id(part) or "")
        if message is None:
            shown.append(part)
        else:
            held.append(HeldCall(len(shown), part, rules.build_result(part, message)))
    return shown, HeldAnswer(
        tuple(held),
        has_client_calls=any(rules.get_call_id(part) is not None for part in shown),
        shown_keys=tuple(map(rules.get_keys, shown)),
    )


def restore_parts(
    parts: Sequence[Json], answers: Sequence[HeldAnswer], rules: PartRules
) -> list[RestoredAnswer]:
    """Split an answer of the client's history into the model's answers with the held calls."""
    restored: list[RestoredAnswer] = []
    rest = list(parts)
    for answer in answers:
        count = len(rest) if answer.has_client_calls else _count_shown(rest, answer, rules)
        restored.append(RestoredAnswer(_insert_held(rest[:count], answer), answer.results))
        rest = rest[count:]
    return [*restored, RestoredAnswer(rest, [])] if rest else restored


def _count_shown(parts: Sequence[Json], answer: HeldAnswer, rules: PartRules) -> int:
    """Return how many parts at the beginning belong to an answer; a client may drop some."""
    remaining = list(answer.shown_keys)
    for count, part in enumerate(parts):
        keys = rules.get_keys(part)
        at = next((at for at, shown in enumerate(remaining) if keys & shown), None)
        if at is None:
            return count
        del remaining[: at + 1]
    return len(parts)


def _insert_held(parts: Sequence[Json], answer: HeldAnswer) -> list[Json]:
    restored = list(parts)
    for call in reversed(answer.held):
        restored.insert(call.position, call.part)
    return restored
