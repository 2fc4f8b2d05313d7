"""Cards of failed iterations and tests, and of infrastructure errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair
from ci_agent_eval.analysis.comparison.findings import describe_confirmation
from ci_agent_eval.analysis.comparison.model import (
    Certainty,
    Comparison,
    ScenarioComparison,
)
from ci_agent_eval.analysis.failure_causes import (
    AffectedScenario,
    CauseGroup,
)
from ci_agent_eval.analysis.waivers import find_waiver
from ci_agent_eval.contract.wording import build_natural_key, replace_varying_parts
from ci_agent_eval.gate.failure_groups import group_errors, group_failures, index_comparison
from ci_agent_eval.gate.model import Judgement
from ci_agent_eval.render import numbers
from ci_agent_eval.render.behaviour_diff import (
    list_diff_lines,
    list_state_lines,
    list_trajectory_lines,
)
from ci_agent_eval.render.cards.budgets import list_overruns
from ci_agent_eval.render.cards.model import (
    SENTENCE_LIMIT,
    CardBlock,
    CardExample,
    CardFacts,
    CauseCard,
    DiffBlock,
    ListBlock,
    NamesBlock,
    OutputBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import (
    CHECK_LIMIT,
    Phrase,
    Quoted,
    ScenarioKey,
    Strong,
    get_key,
    join_phrases,
    quote_name,
    quote_place,
)
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow


def build_failure_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield a card for each cause of failed iterations."""
    rows = {row.key: row for row in facts.scenarios}
    compared = index_comparison(facts.report)
    pairs = {(pair.scenario_id, pair.agent): pair for pair in facts.report.pairs}
    for group in group_failures(facts.report):
        yield _FailureCard(facts, group, rows, compared, pairs).build()


class _FailureCard:
    """Builds the card of one cause."""

    def __init__(
        self,
        facts: CardFacts,
        group: CauseGroup,
        rows: Mapping[ScenarioKey, ScenarioRow],
        compared: Mapping[ScenarioKey, ScenarioComparison],
        pairs: Mapping[ScenarioKey, BehaviourPair],
    ) -> None:
        self._facts = facts
        self._group = group
        self._keys = [get_key(one.scenario) for one in group.scenarios]
        self._rows = [rows[key] for key in self._keys]
        self._compared = [compared[key] for key in self._keys if key in compared]
        self._pair = next((pairs[key] for key in self._keys if key in pairs), None)
        self._example = self._find_example()

    def _find_example(self) -> AffectedScenario:
        shown = None if self._pair is None else (self._pair.scenario_id, self._pair.agent)
        found = (one for one in self._group.scenarios if get_key(one.scenario) == shown)
        return next(found, self._group.first)

    def build(self) -> CauseCard:
        """Return the card."""
        row, cause = self._find_row(self._example), self._example.cause
        return CauseCard(
            self._group.role,
            self._write_summary(),
            tuple(self._list_body()),
            frozenset(self._keys),
            self._facts.build_example(row, cause),
        )

    @property
    def _size(self) -> int:
        return len(self._group.scenarios)

    def _write_summary(self) -> Phrase:
        cause = self._example.cause
        links = self._facts.quote_links(
            self._example.scenario.scenario_id,
            self._facts.links.place(cause.file, cause.line),
        )
        passes, verb = self._describe_passes(), "fails" if self._size == 1 else "fail"
        what = self._quote_cause(f"{verb} ")
        if self._size == 1:
            row = self._rows[0]
            head: Phrase = (*quote_name(row.name), *(f" ({text})" for text in row.remarks), passes)
            return join_phrases([head, what, links], " · ")
        example: Phrase = ("for example ", *quote_name(self._find_row(self._example).name))
        shown = (*example, ": ", *links) if links else example
        head = (Strong(count_noun(self._size, "scenario")), passes)
        return join_phrases([head, what, shown], " · ")

    def _find_row(self, one: AffectedScenario) -> ScenarioRow:
        return self._rows[self._group.scenarios.index(one)]

    def _quote_cause(self, verb: str) -> Phrase:
        cause = self._example.cause
        if cause.kind == "check":
            return (verb, Quoted(cause.name, CHECK_LIMIT))
        return (Quoted(cause.sentence, CHECK_LIMIT),) if cause.sentence else ()

    def _describe_passes(self) -> str:
        """Return ` 60/60 → 0/10, certain`; without a baseline the passes of this run."""
        if len(self._compared) < self._size or any(one.before is None for one in self._compared):
            tallies = [one.scenario.tally for one in self._group.scenarios]
            passed = sum(tally.passed for tally in tallies)
            return f" {format_count(passed)}/{format_count(sum(t.judged for t in tallies))}"
        before = [one.before for one in self._compared if one.before is not None]
        after = [one.after for one in self._compared if one.after is not None]
        sides = (
            f"{format_count(sum(one.passed for one in side))}/"
            f"{format_count(sum(one.judged for one in side))}"
            for side in (before, after)
        )
        word = self._describe_certainty()
        return f" {' → '.join(sides)}{f', {word}' if word else ''}"

    def _describe_certainty(self) -> str:
        """Return the word for the least certain of the drops; empty: it may be chance."""
        if all(one.call == "unconfirmed" for one in self._compared):
            return "not confirmed today"
        if self._group.first.history == "still":
            return "still failing"
        found = {one.certainty for one in self._compared}
        order: tuple[Certainty, ...] = ("inconclusive", "likely", "certain")
        weakest = next(word for word in order if word in found)
        if weakest == "inconclusive" and self._size > 1:
            return ""
        return weakest

    def _list_body(self) -> Iterator[CardBlock]:
        if lines := self._list_diff_lines():
            yield DiffBlock(lines, self._pair)
        if self._pair is not None and self._pair.states:
            yield DiffBlock(list_state_lines(self._pair.states))
        for fault in () if self._pair is None else self._pair.faults:
            yield ParagraphBlock((Quoted(fault, SENTENCE_LIMIT),))
        yield from self._list_messages()
        if advice := self._find_advice():
            yield ParagraphBlock(advice)
        if self._group.role == "contributes" and self._has_suite_drop():
            yield ParagraphBlock(
                ("Each of these drops alone may be chance; all together are not.",)
            )
        if notes := list(self._list_notes()):
            yield ListBlock(notes)
        if self._size > 1:
            yield NamesBlock([row.name.title for row in self._rows])

    def _list_notes(self) -> Iterator[Phrase]:
        """Yield the requirement, the base run again, and acknowledgements that ended."""
        if self._size == 1 and (required := describe_required_passes(self._rows[0].judgement)):
            yield (required,)
        if self._size == 1 and self._group.role == "gates":
            yield from list_overruns(self._facts, self._keys[0])
        for one in self._compared:
            name: Phrase = (Quoted(one.scenario_id), ": ") if self._size > 1 else ()
            if again := describe_confirmation(one):
                yield (*name, again)
            waiver = find_waiver(self._facts.report.verdict.acknowledged, *get_key(one))
            if waiver is not None and waiver.expired:
                yield (*name, f"its acknowledgement ended on {waiver.until}")

    def _has_suite_drop(self) -> bool:
        found = self._facts.report.comparison
        return isinstance(found, Comparison) and any(change.fell for change in found.suite)

    def _list_diff_lines(self) -> Sequence[str]:
        if self._pair is not None:
            return list_diff_lines(self._pair)
        found = (one.divergence for one in self._compared if one.divergence is not None)
        return next(map(list_trajectory_lines, found), ())

    def _list_messages(self) -> Iterator[CardBlock]:
        """Yield the message of the example, and the other causes of a single scenario."""
        cause = self._example.cause
        if cause.kind == "check" and cause.message:
            yield ParagraphBlock((Quoted(cause.message, SENTENCE_LIMIT),))
        if self._size > 1:
            return
        others = [one for one in self._rows[0].causes if one.name != cause.name]
        if others and cause.kind == "check":
            yield ListBlock([_write_other_cause(self._rows[0], one) for one in others])

    def _find_advice(self) -> Phrase:
        found = self._facts.report.comparison
        for rename in found.tool_renames if isinstance(found, Comparison) else ():
            if rename.before in self._group.first.cause.name:
                return ("If the new name is intended, change it in the checks.",)
        return advise_on_module(self._group.first.cause.sentence)


def describe_required_passes(judgement: Judgement) -> str:
    """Return the requirement that a scenario misses; empty: every iteration must pass."""
    if judgement.required_passes is not None:
        return f"{count_noun(judgement.required_passes, 'iteration')} must pass"
    rate = judgement.required_pass_rate
    return "" if rate in {0, 1} else f"{numbers.format_percent(rate)} of its iterations must pass"


def _write_other_cause(row: ScenarioRow, cause: Cause) -> Phrase:
    ran, times = row.scenario.tally.ran, ""
    if cause.iterations is not None and ran > 1:
        times = f" in {format_count(cause.iterations)} of {format_count(ran)} iterations"
    texts = [Quoted(text, SENTENCE_LIMIT) for text in (cause.name, cause.reason) if text]
    quoted = join_phrases([(text,) for text in texts], ": ")
    place = quote_place(cause.place)
    return join_phrases([(f"also{times}: ", *quoted), (place,) if place else ()], ", ")


def build_error_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield a card for each cause of infrastructure errors."""
    rows = {row.key: row for row in facts.scenarios}
    for group in group_errors(facts.report):
        row, size = rows[get_key(group.first.scenario)], len(group.scenarios)
        text = group.first.cause.sentence
        head: Phrase
        if size == 1:
            tally = row.scenario.tally
            part = f"{format_count(group.iterations)} of {count_noun(tally.ran, 'episode')}"
            head = (*quote_name(row.name), f" {part} ended in an error")
        else:
            scenarios = count_noun(size, "scenario")
            head = (Strong(f"{count_noun(group.iterations, 'episode')} in {scenarios}"),)
        quoted = Quoted(text or "no reason given", CHECK_LIMIT)
        links = facts.quote_links(row.scenario.scenario_id, row.place)
        names = NamesBlock([rows[get_key(one.scenario)].name.title for one in group.scenarios])
        body: list[CardBlock] = []
        if len(group.first.cause.sentence) > CHECK_LIMIT:
            body.append(ParagraphBlock((Quoted(group.first.cause.sentence, SENTENCE_LIMIT),)))
        if advice := advise_on_module(group.first.cause.sentence):
            body.append(ParagraphBlock(advice))
        body += [names] if size > 1 else []
        summary = join_phrases([head, (quoted,), links], " · ")
        example = facts.build_example(row, group.first.cause)
        keys = frozenset(get_key(one.scenario) for one in group.scenarios)
        yield CauseCard(group.role, summary, body, keys, example)


def build_test_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield a card for each cause of failed tests that are no episodes.

    pytest's JUnit repeats each collection error as a test; a finding has it already.
    """
    cases: dict[str, list[int]] = {}
    shown = {_name_as_test(row.where) for row in facts.findings.shown if row.has_traceback}
    failing = [
        case
        for case in facts.report.summary.tests.failing
        if case.message != _NOT_COLLECTED or case.title not in shown
    ]
    for at, case in enumerate(failing):
        key = replace_varying_parts(case.message or "")
        cases.setdefault(key or f"\n{at}", []).append(at)
    for members in sorted(cases.values(), key=lambda group: (-len(group), group[0])):
        first = failing[members[0]]
        place = quote_place(facts.links.place(first.file, first.line))
        ended: Phrase = () if first.outcome == "failed" else ("ended in an error",)
        message = first.message or ""
        quoted: Phrase = (Quoted(message, CHECK_LIMIT),) if message else ended
        links: Phrase = (place,) if place else ()
        title = Quoted(first.title, CHECK_LIMIT)
        parts: list[Phrase] = [(title,), quoted, links]
        if len(members) > 1:
            example: Phrase = ("for example ", title)
            parts = [(Strong(count_noun(len(members), "test")),), quoted, example, links]
        text = first.detail or (message if len(message) > CHECK_LIMIT else "")
        body: list[CardBlock] = [OutputBlock(text)] if text else []
        if len(members) > 1:
            titles = (failing[at].title for at in members)
            body.append(NamesBlock(sorted(titles, key=build_natural_key)))
        shown_test = CardExample(
            first.title, facts.links.place(first.file, first.line), "", message
        )
        yield CauseCard("gates", join_phrases(parts, " · "), body, example=shown_test)


_NOT_COLLECTED = "collection failure"
"""The message of pytest's JUnit for a collection error."""


def _name_as_test(nodeid: str) -> str:
    """Return the title that pytest's JUnit gives to a file or class it could not collect."""
    return nodeid.replace("/", ".").replace(".py::", "::").removesuffix(".py")


_MISSING_MODULE = re.compile(r"No module named '([^']{1,100})'")


def advise_on_module(message: str) -> Phrase:
    """Return the advice to install a module that an error misses; empty: it misses none."""
    found = _MISSING_MODULE.search(message)
    if found is None:
        return ()
    module = found[1].partition(".")[0]
    return ("Install ", Quoted(module), " where the suite runs, then run it again.")
