"""Cards of changed instructions, which take the place of the failures that they explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ci_agent_eval.analysis.failure_causes import CAUSE_ROLES
from ci_agent_eval.analysis.instruction_changes import InstructionsChange
from ci_agent_eval.contract.wording import build_natural_key
from ci_agent_eval.gate.failure_groups import index_comparison
from ci_agent_eval.render.behaviour_diff import WIDTH
from ci_agent_eval.render.cards.model import (
    CardBlock,
    CardFacts,
    CauseCard,
    DiffBlock,
    ListBlock,
    NamesBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.phrases import (
    NAME_LIMIT,
    Phrase,
    Quoted,
    ScenarioKey,
    Strong,
    get_phrase_text,
    join_phrases,
)

_MOST_NAMES = 3
_RECORD_AGAIN = (
    "The recordings were made with the text before. If the change is meant, record them again: "
    "--cassette=record, and commit the files."
)


def fold_by_instructions(
    facts: CardFacts, errors: Sequence[CauseCard], failures: Sequence[CauseCard]
) -> tuple[Sequence[CauseCard], Sequence[CauseCard]]:
    """Return a card for each set of scenarios with changed instructions, and the other cards.

    A card of errors is part of it if they are requests without a recording; one of failures,
    unless they failed before the change.
    """
    groups: dict[frozenset[ScenarioKey], list[InstructionsChange]] = {}
    for change in facts.report.instruction_changes:
        groups.setdefault(frozenset(change.scenarios), []).append(change)
    compared = index_comparison(facts.report).items()
    earlier = {key for key, one in compared if one.change == "still_failing"}
    changed, left_errors, left_failures = [], list(errors), list(failures)
    for keys, changes in groups.items():
        missed = frozenset(changes[0].missed)
        misses = [card for card in left_errors if card.scenarios and card.scenarios <= missed]
        failing = [
            card for card in left_failures if card.scenarios and card.scenarios <= keys - earlier
        ]
        left_errors = [card for card in left_errors if card not in misses]
        left_failures = [card for card in left_failures if card not in failing]
        changed.append(_build_card(facts, keys, changes, misses, failing))
    return changed, [*left_errors, *left_failures]


def _build_card(
    facts: CardFacts,
    keys: frozenset[ScenarioKey],
    changes: Sequence[InstructionsChange],
    misses: Sequence[CauseCard],
    failing: Sequence[CauseCard],
) -> CauseCard:
    folded = [*misses, *failing]
    rows = [row for row in facts.scenarios if row.key in keys]
    titles = sorted((row.name.title for row in rows), key=build_natural_key)
    body: list[CardBlock] = [DiffBlock(list(_list_lines(changes)))]
    body += [block for card in failing[:1] for block in card.body if isinstance(block, DiffBlock)]
    body += [ListBlock([card.summary for card in failing])] if failing else []
    body += [ParagraphBlock((_RECORD_AGAIN,))] if misses else []
    body += [NamesBlock(titles)] if len(titles) > 1 else []
    head: Phrase = (Strong(count_noun(len(keys), "scenario")),)
    if len(titles) == 1:
        head = (Quoted(titles[0]),)
    effects = [f"{len(_join_keys(failing))} failing"] if failing else []
    effects += [f"{len(_join_keys(misses))} without a recording of it"] if misses else []
    return CauseCard(
        min((card.role for card in folded), key=CAUSE_ROLES.index, default="informs"),
        join_phrases([_name_changes(changes), head, (", ".join(effects),)], " · "),
        body,
        keys,
        folded[0].example if folded else None,
    )


def _join_keys(cards: Sequence[CauseCard]) -> frozenset[ScenarioKey]:
    return frozenset().union(*(card.scenarios for card in cards))


def _name_changes(changes: Sequence[InstructionsChange]) -> Phrase:
    """Return `instructions of teller, tool get_balance changed`."""
    names = [name_change(one) for one in changes[:_MOST_NAMES]]
    names += [(f"{len(changes) - _MOST_NAMES} more",)] if len(changes) > _MOST_NAMES else []
    return (*join_phrases(names, ", "), " changed")


def name_change(change: InstructionsChange) -> Phrase:
    """Return whose text changed."""
    if change.name is None:
        return ("instructions of the agent",)
    words = "instructions of " if change.kind == "agent" else "tool "
    return (words, Quoted(change.name, NAME_LIMIT))


def _list_lines(changes: Sequence[InstructionsChange]) -> Iterator[str]:
    for change in changes:
        yield f"@@ {get_phrase_text(name_change(change))}: before (-), now (+) @@"
        for line in change.lines:
            for text in wrap(visible_line(line[2:], len(line)), WIDTH) or [""]:
                yield line[:2] + text
