"""Import results of lm-evaluation-harness: `results_*.json`, and `samples_*.jsonl`.

https://github.com/EleutherAI/lm-evaluation-harness (`EvaluationTracker`). A task of a results file
is an episode with its metrics, `task/metric,filter`; a document of a samples file is one with
its metrics, `metric,filter`. Neither has verdicts, so thresholds judge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.records import get_records
from ci_agent_eval.results.importers.score_verdicts import build_score
from ci_agent_eval.results.importers.values import (
    as_list,
    as_mapping,
    as_name,
    as_text,
    format_content,
)

_NAME = re.compile(r"(?:samples_)?(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[\d.:-]+)?\.(?:jsonl|ndjson)")
_SAMPLE_KEYS = frozenset({"doc_id", "target", "resps", "filtered_resps"})
_OTHER_KEYS = _SAMPLE_KEYS | {
    "arguments",
    "doc",
    "doc_hash",
    "filter",
    "metrics",
    "prompt_hash",
    "target_hash",
}


class LMEvalResultsImporter:
    """Imports the metrics of all tasks."""

    tool = "lm-eval (`results_*.json`)"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has results, the tasks' configurations and versions."""
        return all(
            isinstance(document.get(key), dict) for key in ("results", "configs", "versions")
        )

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each task and each group with metrics, by name."""
        results = as_mapping(document.get("results"))
        groups = as_mapping(document.get("group_subtasks"))
        model = as_text(document.get("model_name")) or as_text(document.get("model_source"))
        for task, found in sorted(results.items()):
            scores = [
                build_score(f"{task}/{key}", value)
                for key, value in sorted(as_mapping(found).items())
                if "," in key and not key.partition(",")[0].endswith("_stderr")
            ]
            if scores or not groups.get(task):
                yield {
                    "scenario_id": as_name(task or "(no name)"),
                    "nodeid": f"lm-eval[{as_name(model)}]",
                    "agent": model,
                    "model": model,
                    "scores": scores,
                }
        for task in sorted(as_mapping(document.get("configs")).keys() - results.keys()):
            yield ImportProblem(f"has no result of the task {as_name(task)!r}; run it again")


class LMEvalSamplesImporter:
    """Imports the documents of one task, which `--log_samples` writes."""

    tool = "lm-eval (`samples_*.jsonl`)"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the first record is a sample."""
        records = get_records(document)
        return bool(records) and records[0].keys() >= _SAMPLE_KEYS

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each document, with its metrics after each filter."""
        named = _NAME.fullmatch(str(document.get("name")))
        task = as_name(named["task"] if named else document.get("name"))
        grouped: dict[str, dict[str, dict[str, Any]]] = {}
        for record in get_records(document):
            if not record.keys() >= _SAMPLE_KEYS:
                yield ImportProblem("has a line that is no sample; write the file again")
                continue
            key, filtered = as_name(record["doc_id"]), as_name(record.get("filter") or "none")
            if filtered in grouped.setdefault(key, {}):
                yield ImportProblem(f"has the sample {key} twice; remove lines of older runs")
            grouped[key][filtered] = record
        filters = {name for samples in grouped.values() for name in samples}
        for key, samples in grouped.items():
            for name in sorted(filters - samples.keys()):
                yield ImportProblem(f"has no result of the sample {key} after the filter {name!r}")
            yield {
                "scenario_id": f"{task}/{key}",
                "nodeid": f"lm-eval::{task}",
                "scores": [s for name in sorted(samples) for s in _iterate_scores(samples[name])],
                "trajectory": {"turns": list(_iterate_turns(next(iter(samples.values()))))},
            }


def _iterate_scores(sample: Mapping[str, Any]) -> Iterator[EpisodeData]:
    """Yield the metrics of a sample; a metric that it names and lacks has no value."""
    listed = [name for name in as_list(sample.get("metrics")) if isinstance(name, str)]
    for name in listed or sorted(sample.keys() - _OTHER_KEYS):
        filtered = as_name(sample.get("filter") or "none")
        yield build_score(f"{name},{filtered}", sample.get(name))


def _iterate_turns(sample: Mapping[str, Any]) -> Iterator[EpisodeData]:
    """Yield the first request and the answer."""
    arguments = as_mapping(sample.get("arguments"))
    first = as_mapping(next(iter(arguments.values()), None))
    yield {"role": "user", "content": format_content(first.get("arg_0", sample.get("doc")))}
    answers = as_list(sample["filtered_resps"])
    answer = answers[0] if len(answers) == 1 else sample["filtered_resps"]
    yield {"role": "assistant", "content": format_content(answer)}
