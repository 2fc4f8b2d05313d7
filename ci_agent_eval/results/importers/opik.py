"""Import Opik experiments (`opik export … experiment`) and its episode artifacts.

The experiment's layout is `create_experiment_data_structure` of its `cli/exports/utils.py`. Its
assertions and the score `Passed` of `@llm_unit` are assertions; for other scores see
`score_verdicts`. Tokens and costs are only in the traces' files, so they stay unmeasured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.score_verdicts import build_score
from ci_agent_eval.results.importers.values import (
    as_count,
    as_mapping,
    as_name,
    as_objects,
    as_text,
    format_content,
)

_NAMES = ("scenario_id", "test_name", "name")
"""Keys of a data set item that name it, in order of priority."""

ExperimentItem = Mapping[str, Any]


class OpikExperimentImporter:
    """Imports an exported experiment."""

    score_rule: ScoreRule = "binary"
    tool = "Opik (`opik export … experiment`)"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has an experiment with items."""
        return "items" in document and "dataset_name" in as_mapping(document.get("experiment"))

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each trial of each item of the data set."""
        items = sorted(as_objects(document.get("items")), key=_item_sort_key)
        seen: dict[str, int] = defaultdict(int)
        for item in items:
            scenario = _name_scenario(item)
            seen[scenario] += 1
            yield {
                "scenario_id": scenario,
                "iteration": seen[scenario],
                "thread_id": as_text(item.get("trace_id")),
                "scores": list(_iterate_scores(item)),
                "trajectory": {"turns": list(_iterate_turns(item))},
            }


def _item_sort_key(item: ExperimentItem) -> tuple[str, str]:
    return _name_scenario(item), format_content(item)


def _name_scenario(item: ExperimentItem) -> str:
    data = as_mapping(item.get("dataset_item_data"))
    named = next((name for key in _NAMES if (name := as_text(data.get(key)))), None)
    return as_name(named or data.get("input") or item.get("dataset_item_id") or "(no name)")


def _iterate_scores(item: ExperimentItem) -> Iterator[EpisodeData]:
    for result in as_objects(item.get("assertion_results")):
        name = as_text(result.get("value")) or "(no name)"
        yield build_score(name, result.get("passed") is True, as_text(result.get("reason")))
    for score in as_objects(item.get("feedback_scores")):
        name = as_text(score.get("name")) or "(no name)"
        yield build_score(name, score.get("value"), as_text(score.get("reason")))


def _iterate_turns(item: ExperimentItem) -> Iterator[EpisodeData]:
    data = as_mapping(item.get("dataset_item_data"))
    yield {"role": "user", "content": format_content(data.get("input", dict(data)))}
    output = item.get("evaluation_task_output")
    if output is not None:
        content = as_mapping(output).get("output", output)
        yield {"role": "assistant", "content": format_content(content)}


class OpikArtifactImporter:
    """Imports the episodes of a session in one file, in the layout of Opik's pull request."""

    score_rule: ScoreRule = "none"
    tool = "Opik (the episode artifact of its pytest plugin)"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has counts and results."""
        return "episodes_total" in document and "results" in document

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield the episodes; an episode of a failed test is failed, whatever its own outcome."""
        records = list(as_objects(document.get("results")))
        for record in records:
            episode = dict(as_mapping(record.get("episode")))
            episode.setdefault("nodeid", as_text(record.get("nodeid")))
            if record.get("pytest_passed") is not True and _would_pass(episode):
                episode |= {"outcome": "failed", "reason": "its test failed"}
            yield episode
        total = as_count(document.get("episodes_total"))
        if total is not None and total != len(records):
            yield ImportProblem(
                f"counts {total} episodes and holds {len(records)}; run the suite again",
                "declared_counts_differ",
            )


def _would_pass(episode: EpisodeData) -> bool:
    return bool(episode.get("outcome", "passed") == "passed")
