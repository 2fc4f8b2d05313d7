"""Opik: an experiment as `opik export … experiment` writes it, and the artifact of its episodes.

The experiment's layout is `create_experiment_data_structure` of its `cli/exports/utils.py`. Its
assertions are assertions, and so is the score `Passed` that `@llm_unit` leaves; of the other
scores see `verdicts`. Tokens and costs are in the traces' own files, and stay unmeasured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import Complaint, Document, Draft
from ci_agent_eval.results.importers.values import count, mapping, name_of, objects, shown, text
from ci_agent_eval.results.importers.verdicts import Scored, judged, scored, verdict_names

_NAMES = ("scenario_id", "test_name", "name")
"""Keys of a data set item that name it, in the order in which they count."""

Item = Mapping[str, Any]


class OpikExperiment:
    """Reads an exported experiment."""

    tool = "Opik (`opik export … experiment`)"

    def recognizes(self, document: Document) -> bool:
        """Say so by the experiment and its items."""
        return "items" in document and "dataset_name" in mapping(document.get("experiment"))

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield an episode for each item: each trial of each item of the data set."""
        items = sorted(objects(document.get("items")), key=_order)
        scores = [list(_scores(item)) for item in items]
        verdicts = verdict_names(scores)
        seen: dict[str, int] = defaultdict(int)
        for item, found in zip(items, scores, strict=True):
            scenario = _scenario(item)
            seen[scenario] += 1
            yield {
                "scenario_id": scenario,
                "iteration": seen[scenario],
                "thread_id": text(item.get("trace_id")),
                **judged(found, verdicts),
                "trajectory": {"turns": list(_turns(item))},
            }


def _order(item: Item) -> tuple[str, str]:
    return _scenario(item), shown(item)


def _scenario(item: Item) -> str:
    data = mapping(item.get("dataset_item_data"))
    named = next((name for key in _NAMES if (name := text(data.get(key)))), None)
    return name_of(named or data.get("input") or item.get("dataset_item_id") or "(no name)")


def _scores(item: Item) -> Iterator[Scored]:
    for result in objects(item.get("assertion_results")):
        name = text(result.get("value")) or "(no name)"
        yield Scored(name, float(result.get("passed") is True), text(result.get("reason")))
    for score in objects(item.get("feedback_scores")):
        name = text(score.get("name")) or "(no name)"
        if (one := scored(name, score.get("value"), text(score.get("reason")))) is not None:
            yield one


def _turns(item: Item) -> Iterator[Draft]:
    data = mapping(item.get("dataset_item_data"))
    yield {"role": "user", "content": shown(data.get("input", dict(data)))}
    output = item.get("evaluation_task_output")
    if output is not None:
        said = mapping(output).get("output", output)
        yield {"role": "assistant", "content": shown(said)}


class OpikArtifact:
    """Reads the episodes of a session in one file, in the layout of Opik's pull request."""

    tool = "Opik (the episode artifact of its pytest plugin)"

    def recognizes(self, document: Document) -> bool:
        """Say so by the counts beside the results."""
        return "episodes_total" in document and "results" in document

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield the episodes; one whose test failed did not pass, whatever it says itself."""
        records = list(objects(document.get("results")))
        for record in records:
            given = dict(mapping(record.get("episode")))
            given.setdefault("nodeid", text(record.get("nodeid")))
            if record.get("pytest_passed") is not True and _would_pass(given):
                given |= {"outcome": "failed", "reason": "its test failed"}
            yield given
        total = count(document.get("episodes_total"))
        if total is not None and total != len(records):
            yield Complaint(
                f"counts {total} episodes and holds {len(records)}; run the suite again",
                "declared_counts_differ",
            )


def _would_pass(episode: Draft) -> bool:
    return bool(episode.get("outcome", "passed") == "passed")
