"""Read the conversations of baseline and head that the report compares."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.analysis.behaviour_pairs import (
    BehaviourPair,
    EpisodeExchanges,
    StateSummary,
    choose_pair,
    parse_conversation,
)
from ci_agent_eval.analysis.comparison.model import Comparison, ConversationSample
from ci_agent_eval.analysis.failure_causes import AffectedScenario, find_failure_cause
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, assign_agents
from ci_agent_eval.gate.failure_groups import ScenarioKey, group_failures, index_comparison
from ci_agent_eval.gate.report import JudgedScenario, Report

MOST_CAUSES = 10
"""Causes that get an example; reports show the others in one line each at most."""
MOST_TRIED = 5
"""Scenarios of a cause in which a pair is looked for."""
MOST_ITERATIONS = 10
"""Iterations of a scenario that are read."""

IsWanted = Callable[[EpisodeRecord], bool]


def find_pairs(
    report: Report,
    episodes: Sequence[EpisodeRecord],
    lines: Iterable[str],
    samples: Sequence[ConversationSample],
) -> tuple[BehaviourPair, ...]:
    """Return an example for each cause, and one for each scenario over a hard budget.

    `lines` are the JSON of the episodes, in their order; `samples` are of the baseline.
    """
    groups = [
        [_key(one) for one in group.scenarios[:MOST_TRIED]]
        for group in group_failures(report)[:MOST_CAUSES]
    ]
    over = [_item_key(item) for item in report.judged_scenarios() if item.is_over_budget]
    groups += [[key] for key in over[:MOST_CAUSES]]
    items = {_item_key(item): item for item in report.judged_scenarios()}
    wanted = {key: items[key] for group in groups for key in group}
    now = _read_conversations(wanted, episodes, lines)
    chooser = _PairChooser(report, now, samples)
    found: dict[ScenarioKey, BehaviourPair] = {}
    for group in groups:
        if pair := chooser.choose(group):
            found.setdefault((pair.scenario_id, pair.agent), pair)
    return tuple(found.values())


def _key(one: AffectedScenario) -> ScenarioKey:
    return one.scenario.scenario_id, one.scenario.agent


def _item_key(item: JudgedScenario) -> ScenarioKey:
    return item.scenario.scenario_id, item.scenario.agent


def _read_conversations(
    wanted: Mapping[ScenarioKey, JudgedScenario],
    episodes: Sequence[EpisodeRecord],
    lines: Iterable[str],
) -> Mapping[ScenarioKey, Sequence[EpisodeExchanges]]:
    """Read the first iterations of each scenario that show its failure."""
    found: dict[ScenarioKey, list[EpisodeExchanges]] = defaultdict(list)
    if not wanted:
        return found
    tests = {key: _describe_wanted(item) for key, item in wanted.items()}
    for record, line in zip(assign_agents(episodes), lines, strict=False):
        key = (record.scenario_id, record.agent or None)
        if key in tests and len(found[key]) < MOST_ITERATIONS and tests[key](record):
            episode = json.loads(line)
            turns = episode.get("trajectory", {}).get("turns", ())
            states = _summarize_states(episode.get("states", ()))
            faults = episode.get("faults", ())
            found[key].append(parse_conversation(record.iteration, turns, states, faults))
    return found


def _summarize_states(states: Sequence[Mapping[str, Any]]) -> tuple[StateSummary, ...]:
    if not states:
        return ()
    from ci_agent_eval.analysis.state_changes import summarize_states  # noqa: PLC0415 - rarely needed

    return summarize_states(states)


def _describe_wanted(item: JudgedScenario) -> IsWanted:
    """Return a test whether an iteration failed by the scenario's cause, or broke a budget."""
    cause = find_failure_cause(item.scenario)
    if cause is None:
        return lambda record: any(violation.hard for violation in record.violations)
    if not item.scenario.failures:
        return lambda record: record.outcome == "failed"
    return lambda record: any(one.name == cause.name for one in record.failed_assertions)


class _PairChooser:
    """Chooses the example of a group of scenarios."""

    def __init__(
        self,
        report: Report,
        now: Mapping[ScenarioKey, Sequence[EpisodeExchanges]],
        samples: Sequence[ConversationSample],
    ) -> None:
        self._compared = index_comparison(report)
        self._now = now
        self._samples: Mapping[str, list[ConversationSample]] = defaultdict(list)
        for sample in samples:
            if sample.outcome == "passed" and sample.turns is not None:
                self._samples[sample.scenario_id].append(sample)
        found = report.comparison
        renames = found.tool_renames if isinstance(found, Comparison) else ()
        self._renames = {rename.after: rename.before for rename in renames}

    def choose(self, group: Sequence[ScenarioKey]) -> BehaviourPair | None:
        """Return the first complete pair, else the first one without a baseline."""
        pairs = [pair for pair in map(self._build, group) if pair is not None]
        complete = (pair for pair in pairs if pair.before is not None)
        return next(complete, next(iter(pairs), None))

    def _build(self, key: ScenarioKey) -> BehaviourPair | None:
        before = [
            parse_conversation(sample.iteration, json.loads(sample.turns))
            for sample in self._find_samples(key)
            if sample.turns is not None
        ]
        return choose_pair(key, self._now.get(key, ()), before, self._renames)

    def _find_samples(self, key: ScenarioKey) -> Iterator[ConversationSample]:
        compared = self._compared.get(key)
        if compared is None or compared.change in {"new", "not_comparable"}:
            return
        samples = self._samples[compared.renamed_from or key[0]]
        own = [sample for sample in samples if (sample.agent or None) == (key[1] or None)]
        # An agent that is called otherwise now is the same where it is the only one.
        yield from own or samples
