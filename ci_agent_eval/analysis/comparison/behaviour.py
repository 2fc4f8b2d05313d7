"""Changes of the tool calls of a suite: renamed tools, other tools, and single scenarios.

A scenario whose change a tool of the whole suite explains is not reported again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.model import (
    Divergence,
    ScenarioBehaviour,
    ScenarioComparison,
    SequenceCount,
    ToolChange,
    ToolRename,
)
from ci_agent_eval.analysis.comparison.pool import (
    IterationPool,
    PoolPair,
    RunSample,
    ToolSequence,
)
from ci_agent_eval.analysis.comparison.sequence_test import (
    PERMUTATIONS,
    SequenceCounts,
    compute_change_p_values,
    estimate_sequence_correlation,
)
from ci_agent_eval.analysis.comparison.suite_change import (
    MIN_SCENARIOS,
    SuiteSample,
    compute_mean_drop_p_value,
    sample_measure,
)
from ci_agent_eval.analysis.distributions import import_numpy, round_significant
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, ScenarioKey

_SEED = 20_240_103


MOST_SEQUENCES = 5
"""Most sequences that are kept of a scenario."""


class BehaviourChanges(NamedTuple):
    """Changes of the tool calls of a suite."""

    renames: tuple[ToolRename, ...]
    tools: tuple[ToolChange, ...]
    p_values: tuple[float | None, ...]
    """Adjusted p-value of each scenario, beyond what the tools explain; None: not tested."""


def compare_behaviour(pools: Sequence[PoolPair], level: float) -> BehaviourChanges:
    """Compare the tool calls of scenarios that both sides judged.

    The level holds for all tools together, and for all scenarios together.
    """
    counts = [count_sequences(pair) for pair in pools]
    correlation = estimate_sequence_correlation(counts)
    p_values = compute_change_p_values(counts, correlation, level)
    tools = _find_tool_changes(pools, level)
    suspects = {change.tool for change in tools}
    for scenario, p_value in zip(counts, p_values, strict=True):
        if p_value is not None and p_value <= level:
            suspects |= _list_tools(scenario.pooled)
    renames = _find_renames(counts, suspects)
    if renames:
        names = {rename.after: rename.before for rename in renames}
        pools = [(before, _rename_tools(after, names)) for before, after in pools]
        counts = [count_sequences(pair) for pair in pools]
        tools = _find_tool_changes(pools, level)
    if renames or tools:
        rest = [_remove_tools(scenario, tools) for scenario in counts]
        p_values = compute_change_p_values(rest, correlation, level)
    return BehaviourChanges(renames, tools, tuple(p_values))


def describe_behaviour(
    scenarios: Sequence[ScenarioComparison], pools: Mapping[ScenarioKey, PoolPair], level: float
) -> tuple[tuple[ScenarioComparison, ...], BehaviourChanges]:
    """Return the scenarios with their tool calls on both sides, and the changes of the suite."""
    keys = [(s.scenario_id, s.agent or "") for s in scenarios]
    compared = [key for key in keys if key in pools and all(pool.runs for pool in pools[key])]
    changes = compare_behaviour([pools[key] for key in compared], level)
    names = {rename.after: rename.before for rename in changes.renames}
    p_values = dict(zip(compared, changes.p_values, strict=True))
    described = list(scenarios)
    for place, key in enumerate(keys):
        if key in p_values:
            behaviour = _build_behaviour(count_sequences(pools[key]), p_values[key], level)
            scenario = scenarios[place]._replace(behaviour=behaviour)
            divergence = find_divergence(scenario, pools[key], names)
            described[place] = scenario._replace(divergence=divergence)
    return tuple(described), changes


def _build_behaviour(
    counts: SequenceCounts, p_value: float | None, level: float
) -> ScenarioBehaviour:
    base, after = counts.base, counts.after
    listed = sorted(counts.pooled, key=lambda s: (-base[s], -after.get(s, 0), s))
    return ScenarioBehaviour(
        before=base.total(),
        after=sum(after.values()),
        sequences=tuple(
            SequenceCount(s, base[s], after.get(s, 0)) for s in listed[:MOST_SEQUENCES]
        ),
        typical_before=find_typical(base),
        typical_after=find_typical(after),
        p_value=p_value,
        changed=p_value is not None and p_value <= level,
    )


def count_sequences(pair: PoolPair) -> SequenceCounts:
    """Return how often each sequence of tool calls occurred on both sides."""
    before, after = (tuple(sample.sequences for sample in pool.runs) for pool in pair)
    return SequenceCounts(before, after[0])


def _list_tools(sequences: Iterable[ToolSequence]) -> set[str]:
    return {tool for sequence in sequences for tool in sequence}


def _rename_tools(pool: IterationPool, names: Mapping[str, str]) -> IterationPool:
    def rename(sequence: ToolSequence) -> ToolSequence:
        return tuple(names.get(tool, tool) for tool in sequence)

    runs = (s._replace(sequences=_map_sequences(s.sequences, rename)) for s in pool.runs)
    return pool._replace(runs=tuple(runs))


def _remove_tools(scenario: SequenceCounts, changes: Sequence[ToolChange]) -> SequenceCounts:
    """Leave out the tools whose share changed in this scenario as in the whole suite."""
    explained = set()
    for change in changes:
        old, new = (_compute_share(side, change.tool) for side in (scenario.base, scenario.after))
        if (new - old) * (change.after - change.before) > 0:
            explained.add(change.tool)
    if not explained:
        return scenario

    def remove(sequence: ToolSequence) -> ToolSequence:
        return tuple(tool for tool in sequence if tool not in explained)

    before = tuple(_map_sequences(run, remove) for run in scenario.before)
    return SequenceCounts(before, _map_sequences(scenario.after, remove))


def _map_sequences(
    counts: Mapping[ToolSequence, int], convert: Callable[[ToolSequence], ToolSequence]
) -> Mapping[ToolSequence, int]:
    found: Counter[ToolSequence] = Counter()
    for sequence, count in counts.items():
        found[convert(sequence)] += count
    return found


def _find_tool_changes(pools: Sequence[PoolPair], level: float) -> tuple[ToolChange, ...]:
    """Return the tools that a significantly larger or smaller share of episodes calls.

    A clustered t-test over the scenarios that call the tool on either side, with an equal share
    of the level for each tool. With few episodes it is too sure, so permutations confirm it.
    """
    callers: dict[str, list[PoolPair]] = defaultdict(list)
    for pair in pools:
        for tool in _list_tools(count_sequences(pair).pooled):
            callers[tool].append(pair)
    sampled = {
        tool: sample_measure(calling, partial(_list_calls, tool))
        for tool, calling in sorted(callers.items())
        if len(calling) >= MIN_SCENARIOS
    }
    tested = {tool: samples for tool, samples in sampled.items() if _can_differ(samples)}
    found = []
    for tool, samples in tested.items():
        p_value = min(_compute_p_value(samples) * len(tested), 1.0)
        if p_value <= level and _is_confirmed(tool, callers[tool], level / len(tested)):
            before, after = _average(s.usual for s in samples), _average(s.after for s in samples)
            p_value = round_significant(p_value)
            found.append(ToolChange(tool, before, after, len(samples), p_value))
    return tuple(sorted(found, key=lambda change: (-change.scenarios, change.tool)))


def _list_calls(tool: str, sample: RunSample) -> Sequence[float]:
    """Return 1 for each episode that calls the tool, 0 for each other one."""
    calling = _count_calls(sample.sequences, tool)
    return [1.0] * calling + [0.0] * (sum(sample.sequences.values()) - calling)


def _count_calls(counts: Mapping[ToolSequence, int], tool: str) -> int:
    return sum(count for sequence, count in counts.items() if tool in sequence)


def _compute_share(counts: Mapping[ToolSequence, int], tool: str) -> float:
    return _count_calls(counts, tool) / sum(counts.values())


def _average(shares: Iterable[float]) -> float:
    return round(fmean(shares), 10)


def _can_differ(samples: Sequence[SuiteSample]) -> bool:
    """Return whether there are scenarios enough, and some episode does not call the tool."""
    is_constant = all(sample.after == sample.usual == 1 for sample in samples)
    return len(samples) >= MIN_SCENARIOS and not is_constant


def _compute_p_value(samples: Sequence[SuiteSample]) -> float:
    """Return the two-sided p-value that the mean changed."""
    mirrored = [
        SuiteSample(tuple(1 - share for share in s.before), 1 - s.usual, 1 - s.after)
        for s in samples
    ]
    return 2 * min(compute_mean_drop_p_value(samples), compute_mean_drop_p_value(mirrored))


def _is_confirmed(tool: str, calling: Sequence[PoolPair], level: float) -> bool:
    """Return whether hardly any permutation of episodes within the scenarios differs as much."""
    np = import_numpy()
    sides = [(scenario.base, scenario.after) for scenario in map(count_sequences, calling)]
    calls = np.array([[_count_calls(side, tool) for side in pair] for pair in sides])
    sizes = np.array([[sum(side.values()) for side in pair] for pair in sides])
    pooled, past, now = calls.sum(axis=1), sizes[:, 0], sizes[:, 1]
    draw = np.random.default_rng(_SEED).hypergeometric
    heads = draw(pooled, past + now - pooled, now, size=(PERMUTATIONS, len(sides)))
    moved = np.abs((heads / now - (pooled - heads) / past).sum(axis=1))
    observed = abs((calls[:, 1] / now - calls[:, 0] / past).sum())
    as_far = int((moved >= observed - 1e-9).sum())
    return (1 + as_far) / (1 + PERMUTATIONS) <= max(level, 1 / (1 + PERMUTATIONS))


def _find_renames(
    scenarios: Sequence[SequenceCounts], suspects: AbstractSet[str]
) -> tuple[ToolRename, ...]:
    """Return the tools that are gone while a new one is called in their place.

    Only tools whose calls changed significantly are renamed: `suspects`.
    """
    known = _list_tools(sequence for s in scenarios for sequence in s.base)
    called = _list_tools(sequence for s in scenarios for sequence in s.after)
    gone, came = (known - called) & suspects, (called - known) & suspects
    matches = (_match(scenarios, old, new, gone | came) for old in gone for new in came)
    found: list[ToolRename] = []
    for _, rename in sorted((m for m in matches if m), key=lambda match: match[0]):
        if all(rename.before != f.before and rename.after != f.after for f in found):
            found.append(rename)
    return tuple(found)


_RenameRank = tuple[int, int, str, str]
"""Scenarios that call both, those with alike calls before it (both negative), and the names."""


def _match(
    scenarios: Sequence[SequenceCounts], old: str, new: str, unlike: Collection[str]
) -> tuple[_RenameRank, ToolRename] | None:
    """Return the rename, if the new tool is in the place of the old one in most scenarios.

    That is, typical sequences are alike before it or after it; `unlike` tools, which may all be
    renamed, count as alike.
    """
    calling = [s for s in scenarios if _count_calls(s.base, old)]
    both = [s for s in calling if _count_calls(s.after, new)]
    splits = [
        (
            _split(find_typical(s.base, old), old, unlike),
            _split(find_typical(s.after, new), new, unlike),
        )
        for s in both
    ]
    alike_before = sum(base[0] == head[0] for base, head in splits)
    alike = sum(base[0] == head[0] or base[1] == head[1] for base, head in splits)
    if alike * 2 <= len(both):
        return None
    rename = ToolRename(old, new, len(both), len(calling))
    return (-len(both), -alike_before, old, new), rename


def _split(
    sequence: ToolSequence, tool: str, unlike: Collection[str]
) -> tuple[Sequence[str | None], Sequence[str | None]]:
    """Return the calls before and after the tool's first call, without names in `unlike`."""
    at = sequence.index(tool)
    names = [None if name in unlike else name for name in sequence]
    return names[:at], names[at + 1 :]


_GET_TOOLS = attrgetter("tools")
Renames = Mapping[str, str]
"""New names of tools to their names in the base."""


def find_typical(counts: Mapping[ToolSequence, int], tool: str | None = None) -> ToolSequence:
    """Return the most frequent sequence, among equally frequent ones the smallest.

    With a tool: of those that call it.
    """
    wanted = [sequence for sequence in counts if tool is None or tool in sequence]
    return min(wanted, key=lambda sequence: (-counts[sequence], sequence))


def find_divergence(
    scenario: ScenarioComparison, pools: PoolPair, names: Renames
) -> Divergence | None:
    """Return where the failing episodes leave the base, or where a changed scenario does.

    None: the calls are the same, or differ as much as in unchanged runs.
    """
    before, after = (list(pool.judged) for pool in pools)
    if scenario.change == "newly_failing" or scenario.call in {"regression", "undecided"}:
        passing = [record for record in before if record.outcome == "passed"]
        failing = [record for record in after if record.outcome == "failed"]
        if found := _compare_typical(passing, failing, names):
            return found._replace(episodes="failing")
    if over := set(scenario.newly_over):
        within = [record for record in before if not _is_over(record, over)]
        beyond = [record for record in after if _is_over(record, over)]
        if found := _compare_typical(within, beyond, names):
            return found._replace(episodes="over_budget")
    if scenario.behaviour is None or not scenario.behaviour.changed:
        return None
    before, after = ([record for record in side if record.is_rated] for side in (before, after))
    found = _compare_typical(before, after, names)
    return found or _compare_risen(before, after, names)


def _is_over(record: EpisodeRecord, budgets: set[str]) -> bool:
    return any(violation.budget in budgets for violation in record.violations)


def _compare_typical(
    before: Sequence[EpisodeRecord],
    after: Sequence[EpisodeRecord],
    names: Renames,
) -> Divergence | None:
    """Compare the most frequent sequences; None: they are equal, or there is no episode."""
    if not before or not after:
        return None
    typical = (find_typical(Counter(map(_GET_TOOLS, side))) for side in (before, after))
    return _compare_sequences((before, after), tuple(typical), names)


def _compare_risen(
    before: Sequence[EpisodeRecord], after: Sequence[EpisodeRecord], names: Renames
) -> Divergence | None:
    """Compare the base's typical tool sequence with the one that gained most episodes."""
    old, new = Counter(map(_GET_TOOLS, before)), Counter(map(_GET_TOOLS, after))
    known = {_rename(sequence, names): count for sequence, count in new.items()}
    rises = {
        s: known[_rename(s, names)] / len(after) - old[_rename(s, names)] / len(before) for s in new
    }
    usual = find_typical(old)
    risen = [s for s in rises if rises[s] > 0 and _rename(s, names) != usual]
    if not risen:
        return None
    most = min(risen, key=lambda sequence: (-rises[sequence], sequence))
    return _compare_sequences((before, after), (usual, most), names)


def _rename(sequence: ToolSequence, names: Renames) -> ToolSequence:
    return tuple(names.get(tool, tool) for tool in sequence)


def _compare_sequences(
    sides: tuple[Sequence[EpisodeRecord], ...],
    sequences: tuple[ToolSequence, ...],
    names: Renames,
) -> Divergence | None:
    """Return the first difference of two sequences; None: they are the same but for renames."""
    before, after = sequences
    pairs = enumerate(zip_longest(before, _rename(after, names)))
    at = next((at for at, (old, new) in pairs if old != new), None)
    if at is None:
        return None
    share_before, share_after = (
        (sum(record.tools == sequence for record in side), len(side))
        for side, sequence in zip(sides, sequences, strict=True)
    )
    return Divergence(at + 1, before, after, share_before, share_after)
