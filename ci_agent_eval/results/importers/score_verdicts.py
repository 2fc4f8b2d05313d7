"""Judge imported results by their scores: by thresholds, and by values of 0 and 1.

A score with a threshold is an assertion, in the results of any tool. Of tools without verdicts, a
score with only the values 0 and 1 (or true, false, correct, incorrect) in the whole file is one,
too; a case that lacks some of the file's verdicts was not fully judged: an error, never a pass.
Any other score is information.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.result_mapping import ANY_SCORE, ScoreThreshold
from ci_agent_eval.contract.stops import AGENT_STOPS
from ci_agent_eval.results.importers.protocol import EpisodeData, ImportedItem, ScoreRule
from ci_agent_eval.results.importers.values import as_number, as_objects, as_share, as_text

_MAX_NAMES = 3
_REMEDY = "set a threshold for one, such as --score-thresholds '{name}>=…'"


def build_score(name: str, value: object, reason: str | None = None) -> EpisodeData:
    """Build a score; its value is None if it is no finite number."""
    figure = float(value) if isinstance(value, bool) else as_number(value)
    return {"name": name, "value": figure, "reason": reason}


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
    judge = _ScoreJudge(rule, thresholds)
    verdicts = tuple(sorted(n for n, found in values.items() if judge.is_verdict(n, found)))
    for item in listed:
        yield judge.judge_episode(item, verdicts) if isinstance(item, dict) else item


@dataclass(frozen=True, slots=True)
class _ScoreJudge:
    """Judges the results of one file by their scores."""

    rule: ScoreRule
    thresholds: Mapping[str, ScoreThreshold]

    def _find_threshold(self, name: str) -> ScoreThreshold | None:
        return self.thresholds.get(name) or self.thresholds.get(ANY_SCORE)

    def is_verdict(self, name: str, values: set[float | None]) -> bool:
        """Say whether a score with these values in the file is a verdict."""
        known = values - {None}
        is_binary = self.rule == "binary" and bool(known) and known <= {0.0, 1.0}
        return is_binary or self._find_threshold(name) is not None

    def judge_episode(self, episode: EpisodeData, verdicts: Sequence[str]) -> EpisodeData:
        """Return an episode with the scores that are verdicts as assertions, and its outcome."""
        scores = list(as_objects(episode.get("scores")))
        kept = [score for score in scores if score.get("value") is not None]
        if episode.get("outcome") in ("error", "skipped"):
            return episode | {"scores": kept}
        judged = {as_text(score.get("name")) for score in kept}
        # A tool with verdicts may have other scores for each case; one without a value is broken.
        named = {as_text(s.get("name")) for s in scores}
        wanted = [name for name in verdicts if self.rule == "binary" or name in named]
        missing = [name for name in wanted if name not in judged]
        assertions = [
            *episode.get("assertions", ()),
            *(self._build_assertion(s) for s in kept if s.get("name") in verdicts),
        ]
        fields: EpisodeData = {
            "outcome": episode.get("outcome", "passed"),
            "assertions": assertions,
            "scores": [s for s in kept if s.get("name") not in verdicts],
        }
        if missing or ("outcome" not in episode and not assertions):
            fields |= {"outcome": "error", "reason": _explain_unjudged(missing, scores)}
        return episode | fields

    def _build_assertion(self, score: Mapping[str, Any]) -> EpisodeData:
        name, value = score["name"], as_number(score.get("value"))
        threshold = self._find_threshold(name)
        if value is None or threshold is None:
            passed, limit = value == 1, None
        else:
            passed, limit = threshold.accepts(value), f"{value:.10g}, {threshold}"
        is_lower_better = threshold is not None and threshold.is_maximum
        return {
            "name": name,
            "passed": passed,
            "score": None if is_lower_better else as_share(value),
            "reason": " · ".join(part for part in (as_text(score.get("reason")), limit) if part)
            or None,
        }


def _collect_values(episodes: Iterable[EpisodeData]) -> dict[str, set[float | None]]:
    """Return the values of each score, without those of cases that ended in an error."""
    values: dict[str, set[float | None]] = {}
    for episode in episodes:
        for score in as_objects(episode.get("scores")):
            name = as_text(score.get("name"))
            if name is not None and episode.get("outcome") != "error":
                values.setdefault(name, set()).add(as_number(score.get("value")))
    return values


def _explain_unjudged(missing: Sequence[str], scores: Sequence[Mapping[str, Any]]) -> str:
    if missing:
        return f"it was not judged to its end: it has no score {', '.join(map(repr, missing))}"
    names = [name for score in scores if (name := as_text(score.get("name"))) is not None]
    if not names:
        return "it was not judged: it has neither a verdict nor a score"
    listed = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    remedy = _REMEDY.format(name=names[0])
    return f"it was not judged: no score of it ({listed}) says pass or fail; {remedy}"


def build_stop_fields(reason: str | None) -> dict[str, Any]:
    """Build the stop reason fields of an episode.

    The tool's outcome is kept: the tool knew of the limit when it judged the run.
    """
    return {"stop_reason": reason, "allowed_stops": [reason] if reason in AGENT_STOPS else []}
