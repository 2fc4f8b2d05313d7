"""The one table of options: configuration key, environment variable, flag and action input.

Each option is written once. `key` is its place in the configuration file, its
environment variable is `AGENT_EVAL_<NAME>`, its flag and its action input `<name>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_ARTIFACT = "agent-eval-report"
"""Name under which the workflows of our documents upload a report folder."""

OptionKind = Literal["text", "flag", "number", "count", "choice"]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting that flags, environment, file and action inputs all can give."""

    name: str
    """The flag and action input, in kebab case."""
    key: tuple[str, ...]
    """Its place in the configuration file."""
    kind: OptionKind
    help: str
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return "AGENT_EVAL_" + self.name.upper().replace("-", "_")


OPTIONS: tuple[Option, ...] = (
    Option(
        "suite",
        ("suite",),
        "text",
        "Name of the suite; each suite has its own comment and its own check run.",
    ),
    Option(
        "report-dir",
        ("report_dir",),
        "text",
        "Folder that the report is written to.",
    ),
    Option(
        "formats",
        ("formats",),
        "text",
        "Formats of others to write the report in, too: ctrf, sarif.",
    ),
    Option(
        "min-pass-rate",
        ("gate", "min_pass_rate"),
        "number",
        "Share of a scenario's judged iterations that must pass, 0 to 1; "
        "a scenario's own min_pass_rate wins.",
    ),
    Option(
        "max-error-rate",
        ("gate", "max_error_rate"),
        "number",
        "Share of the required episodes that may end in an error (the world's fault), 0 to 1.",
    ),
    Option(
        "allow-skipped",
        ("gate", "allow_skipped"),
        "flag",
        "Let the gate pass although iterations of a required scenario were skipped.",
    ),
    Option(
        "passed-on-retry",
        ("gate", "passed_on_retry"),
        "choice",
        "How a test of a JUnit file counts that failed and passed on a retry: passed, flaky "
        "(it passes and is listed; the default), failed.",
        ("passed", "flaky", "failed"),
    ),
    Option(
        "eval-min-pass-rate",
        ("gate", "eval_min_pass_rate"),
        "number",
        "Share of all evaluation conversations that must pass, 0 to 1; unset: they only inform.",
    ),
    Option(
        "eval-min-score",
        ("gate", "eval_min_score"),
        "number",
        "Average score that the evaluations must reach, 0 to 1; unset: they only inform.",
    ),
    Option(
        "max-cost-usd",
        ("budgets", "total_cost_usd"),
        "number",
        "Hard budget of the whole suite, in US dollars; the run stops at it.",
    ),
    Option(
        "max-tokens",
        ("budgets", "total_tokens"),
        "count",
        "Hard budget of the whole suite, in tokens; the run stops at it.",
    ),
    Option(
        "max-wall-time-s",
        ("budgets", "total_wall_time_s"),
        "number",
        "Hard budget of the whole suite, in seconds; the run stops at it.",
    ),
    Option(
        "baseline",
        ("compare", "baseline"),
        "text",
        "Runs to compare with: a results file, a report folder, a folder or pattern of "
        "several, git:REF:PATH, or artifact (the last runs of the base branch); "
        "unset: none.",
    ),
    Option(
        "baseline-runs",
        ("compare", "runs"),
        "count",
        "How many runs of the baseline count at most, the latest.",
    ),
    Option(
        "baseline-artifact",
        ("compare", "artifact"),
        "text",
        "Name, or pattern, of the artifacts that baseline: artifact reads.",
    ),
    Option(
        "compare-level",
        ("compare", "level"),
        "number",
        "Level of the test that a pass rate fell: how often a suite in which nothing changed "
        "may be told so.",
    ),
    Option(
        "compare-min-drop",
        ("compare", "min_drop"),
        "number",
        "Drop of a pass rate, 0 to 1, that too few iterations must not leave open.",
    ),
    Option(
        "compare-across",
        ("compare", "across"),
        "text",
        "What may differ between the runs that are compared: model, tools, prices, judge.",
    ),
    Option(
        "compare-gate",
        ("compare", "gate"),
        "choice",
        "Whether regressions, and drops that too few iterations leave open, fail the gate.",
        ("fail", "warn"),
    ),
    Option(
        "max-cost-increase",
        ("compare", "max_cost_increase"),
        "number",
        "Share by which the cost per episode may rise over the baseline; unset: by any.",
    ),
    Option(
        "max-latency-increase",
        ("compare", "max_latency_increase"),
        "number",
        "Share by which the p95 turn latency may rise over the baseline; unset: by any.",
    ),
    Option(
        "acknowledge",
        ("acknowledged",),
        "text",
        "File of what comparing finds and is accepted for a while; by default "
        "agent-eval-acknowledged.toml, if it is there.",
    ),
    Option(
        "scenario-manifest",
        ("scenario_manifest",),
        "text",
        "File of the scenarios that a run has to contain; by default agent-eval-scenarios.toml, "
        "if it is there.",
    ),
    Option(
        "quarantine",
        ("quarantine_file",),
        "text",
        "File of scenarios that do not gate for a while, beside those of the configuration.",
    ),
    Option(
        "comment",
        ("publish", "comment"),
        "choice",
        "When to post and update the pull request comment: update (every run), on-failure, "
        "on-change (of the verdict or of what does not pass), off.",
        ("update", "on-failure", "on-change", "off"),
    ),
    Option(
        "comment-author",
        ("publish", "comment_author"),
        "text",
        "Login that the comments are posted as; needed only for the token of an app of your own.",
    ),
    Option(
        "check-run",
        ("publish", "check_run"),
        "flag",
        "Whether to create a check run with annotations.",
    ),
    Option(
        "max-annotations",
        ("publish", "max_annotations"),
        "count",
        "Most annotations to publish, 0 to 5000 (default 200): one for each scenario first, then "
        "by severity.",
    ),
    Option(
        "check-name",
        ("publish", "check_name"),
        "text",
        "Name of the check run, the one that branch protection requires.",
    ),
)
