"""Judge imported results by their scores: by thresholds, and by values of 0 and 1.

A score with a threshold is an assertion, in the results of any tool. Of tools without verdicts, a
score with only the values 0 and 1 (or true, false, correct, incorrect) in the whole file is one,
too; a case that lacks some of the file's verdicts was not fully judged: an error, never a pass.
Any other score is information.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.contract.result_mapping import ANY_SCORE, ScoreThreshold
from ci_agent_eval.results.importers.values import EpisodeData, ImportedItem, ScoreRule, as_share

_MAX_NAMES = 3
_REMEDY = "set a threshold for one, such as --score-thresholds '{name}>=…'"

_Scores = Sequence[Mapping[str, Any]]


def judge_scores(
    items: Iterable[ImportedItem],
    rule: ScoreRule,
    thresholds: Mapping[str, ScoreThreshold],
    names: set[str],
) -> Iterator[ImportedItem]:
    """Yield the results of one file with their scores judged; add the scores' names to `names`.

    An episode without an outcome is judged by its assertions and scores alone.
    """
    listed = list(items)
    values = _collect_values(item for item in listed if isinstance(item, dict))
    names.update(values)
    verdicts: dict[str, ScoreThreshold | None] = {}
    for name, found in sorted(values.items()):
        threshold = thresholds.get(name) or thresholds.get(ANY_SCORE)
        numbers = found - {None}
        is_binary = rule == "binary" and bool(numbers) and numbers <= {0.0, 1.0}
        if threshold is not None or is_binary:
            verdicts[name] = threshold
    for item in listed:
        yield _judge_episode(item, rule, verdicts) if isinstance(item, dict) else item


def _collect_values(episodes: Iterable[EpisodeData]) -> dict[str, set[float | None]]:
    """Return the values of each score, except of cases that ended in an error."""
    values: dict[str, set[float | None]] = {}
    for episode in episodes:
        for score in episode.get("scores", ()):
            if episode.get("outcome") != "error":
                values.setdefault(score["name"], set()).add(score["value"])
    return values


def _judge_episode(
    episode: EpisodeData, rule: ScoreRule, verdicts: Mapping[str, ScoreThreshold | None]
) -> EpisodeData:
    """Return an episode with the scores that are verdicts as assertions, and its outcome."""
    scores = episode.get("scores", ())
    measured = [score for score in scores if score["value"] is not None]
    if episode.get("outcome") in ("error", "skipped"):
        return episode | {"scores": measured}
    judged = {score["name"] for score in measured}
    # A tool with verdicts may have other scores for each case; one without a value is broken.
    named = {score["name"] for score in scores}
    wanted = [name for name in verdicts if rule == "binary" or name in named]
    missing = [name for name in wanted if name not in judged]
    assertions = [
        *episode.get("assertions", ()),
        *(_build_assertion(s, verdicts[s["name"]]) for s in measured if s["name"] in verdicts),
    ]
    fields: EpisodeData = {
        "outcome": episode.get("outcome", "passed"),
        "assertions": assertions,
        "scores": [score for score in measured if score["name"] not in verdicts],
    }
    if missing or ("outcome" not in episode and not assertions):
        fields |= {"outcome": "error", "reason": _explain_unjudged(missing, scores)}
    return episode | fields


def _build_assertion(score: Mapping[str, Any], threshold: ScoreThreshold | None) -> EpisodeData:
    value = score["value"]
    limit = None if threshold is None else f"{value:.10g}, {threshold}"
    is_lower_better = threshold is not None and threshold.is_maximum
    return {
        "name": score["name"],
        "passed": value == 1 if threshold is None else threshold.accepts(value),
        "score": None if is_lower_better else as_share(value),
        "reason": " · ".join(part for part in (score.get("reason"), limit) if part) or None,
    }


def _explain_unjudged(missing: Sequence[str], scores: _Scores) -> str:
    if missing:
        return f"it was not judged to its end: it has no score {', '.join(map(repr, missing))}"
    names = [score["name"] for score in scores]
    if not names:
        return "it was not judged: it has neither a verdict nor a score"
    listed = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    remedy = _REMEDY.format(name=names[0])
    return f"it was not judged: no score of it ({listed}) says pass or fail; {remedy}"
