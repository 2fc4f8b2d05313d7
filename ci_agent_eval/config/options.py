"""Table of all options: configuration key, environment variable and flag.

`key` is the place in the configuration file; the environment variable is
`AGENT_EVAL_<NAME>` and the flag `--<name>`. Those of `INPUT_OPTIONS` are inputs of the action too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_ARTIFACT = "agent-eval-report"
"""Artifact name of the report folder in the documented workflows."""

OWN_FORMATS = ("ctrf",)
"""The built-in additional formats of reports."""

OptionKind = Literal["text", "flag", "number", "count", "choice"]


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that can be given as flag, variable and file key."""

    name: str
    """Name of the flag, in kebab case."""
    key: tuple[str, ...]
    """Path in the configuration file."""
    kind: OptionKind
    help: str
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return "AGENT_EVAL_" + self.name.upper().replace("-", "_")


OPTIONS: tuple[Option, ...] = (
    Option(
        "suite",
        ("suite",),
        "text",
        "Name of the suite. Each suite has its own comment and check run.",
    ),
    Option(
        "title",
        ("title",),
        "text",
        "First words of the headline, at most 40 characters. Default: Agent evals; Tests, if there "
        "are no episodes.",
    ),
    Option(
        "report-dir",
        ("report_dir",),
        "text",
        "Folder of the report.",
    ),
    Option(
        "formats",
        ("formats",),
        "text",
        "Additional formats of the report: ctrf, or a format of an installed package.",
    ),
    Option(
        "min-pass-rate",
        ("gate", "min_pass_rate"),
        "number",
        "Minimum pass rate of a scenario's judged iterations, 0 to 1. "
        "A scenario's own min_pass_rate takes precedence.",
    ),
    Option(
        "suite-min-pass-rate",
        ("gate", "suite_min_pass_rate"),
        "number",
        "Minimum pass rate of all strict required scenarios together, 0 to 1. If set, a failing "
        "scenario fails the gate only if it has its own min_pass_rate. If not set, every required "
        "scenario must pass.",
    ),
    Option(
        "max-error-rate",
        ("gate", "max_error_rate"),
        "number",
        "Maximum share of required episodes with an infrastructure error, 0 to 1.",
    ),
    Option(
        "allow-skipped",
        ("gate", "allow_skipped"),
        "flag",
        "Pass the gate even if iterations of a required scenario were skipped.",
    ),
    Option(
        "passed-on-retry",
        ("gate", "passed_on_retry"),
        "choice",
        "Outcome of a JUnit test that failed and then passed on a retry: passed, flaky "
        "(passes and is listed; the default) or failed.",
        ("passed", "flaky", "failed"),
    ),
    Option(
        "eval-min-pass-rate",
        ("gate", "eval_min_pass_rate"),
        "number",
        "Minimum pass rate of all evaluation conversations, 0 to 1. Unset: they do not gate.",
    ),
    Option(
        "eval-min-score",
        ("gate", "eval_min_score"),
        "number",
        "Minimum average score of the evaluations, 0 to 1. Unset: they do not gate.",
    ),
    Option(
        "score-thresholds",
        ("gate", "score_thresholds"),
        "text",
        "Thresholds of the scores in other tools' results, such as "
        "'faithfulness>=0.8 noise<=0.2'; '*' is every score without its own. A result with scores "
        "alone needs one to pass.",
    ),
    Option(
        "mapping",
        ("mapping",),
        "text",
        "File that describes results of other formats: where their records have id, outcome and "
        "scores.",
    ),
    Option(
        "total-cost-usd",
        ("budgets", "total_cost_usd"),
        "number",
        "Hard budget of the whole suite in US dollars. The run stops when it is exceeded.",
    ),
    Option(
        "total-tokens",
        ("budgets", "total_tokens"),
        "count",
        "Hard budget of the whole suite in tokens. The run stops when it is exceeded.",
    ),
    Option(
        "total-wall-time-s",
        ("budgets", "total_wall_time_s"),
        "number",
        "Hard budget of the whole suite in seconds. The run stops when it is exceeded.",
    ),
    Option(
        "baseline",
        ("compare", "baseline"),
        "text",
        "Runs to compare with: a results file, a report folder, a folder or glob of several, "
        "git:REF:PATH, or artifact (the latest runs of the base branch). Unset: no comparison.",
    ),
    Option(
        "baseline-runs",
        ("compare", "runs"),
        "count",
        "Maximum number of baseline runs; the latest ones are used.",
    ),
    Option(
        "baseline-artifact",
        ("compare", "artifact"),
        "text",
        "Name or glob of the artifacts that `baseline: artifact` reads.",
    ),
    Option(
        "compare-level",
        ("compare", "level"),
        "number",
        "Significance level of the regression test: the accepted false-alarm rate for an "
        "unchanged suite.",
    ),
    Option(
        "compare-min-drop",
        ("compare", "min_drop"),
        "number",
        "Smallest drop in pass rate, 0 to 1, that a run must be able to detect. If it cannot, the "
        "result is inconclusive.",
    ),
    Option(
        "compare-across",
        ("compare", "across"),
        "text",
        "Conditions that may differ between compared runs: model, tools, prices, judge. By "
        "default all but judge.",
    ),
    Option(
        "compare-gate",
        ("compare", "gate"),
        "choice",
        "Effect of regressions and of a drop of the suite on the gate: fail or warn.",
        ("fail", "warn"),
    ),
    Option(
        "confirm",
        ("compare", "confirm"),
        "flag",
        "Before a run fails by a drop against the baseline, run the scenarios in doubt again, on "
        "the merge base and on this commit in turn; a drop that this does not confirm is a "
        "warning.",
    ),
    Option(
        "confirm-base",
        ("compare", "confirm_base"),
        "text",
        "Branch or commit; its merge base with HEAD is the base of confirm. Default: the pull "
        "request's base branch, else the branch or commit of the baseline.",
    ),
    Option(
        "max-cost-increase",
        ("compare", "max_cost_increase"),
        "number",
        "Maximum relative increase of the cost per episode over the baseline (0.2 = +20 %). "
        "Unset: no limit.",
    ),
    Option(
        "max-latency-increase",
        ("compare", "max_latency_increase"),
        "number",
        "Maximum relative increase of the p95 turn latency over the baseline (0.2 = +20 %). "
        "Unset: no limit.",
    ),
    Option(
        "max-typical-latency-increase",
        ("compare", "max_typical_latency_increase"),
        "number",
        "Maximum relative increase of the typical turn latency, the geometric mean over all "
        "scenarios, over the baseline (0.2 = +20 %). Unset: no limit.",
    ),
    Option(
        "max-scenario-cost-increase",
        ("compare", "max_scenario_cost_increase"),
        "number",
        "Maximum relative increase of the cost of any one scenario over the baseline "
        "(1.0 = twice as much). Unset: no limit.",
    ),
    Option(
        "max-scenario-latency-increase",
        ("compare", "max_scenario_latency_increase"),
        "number",
        "Maximum relative increase of the typical turn latency of any one scenario over the "
        "baseline (1.0 = twice as long). Unset: no limit.",
    ),
    Option(
        "acknowledge",
        ("acknowledged",),
        "text",
        "File of acknowledged regressions, each with an expiry date. Default: "
        "agent-eval-acknowledged.toml, if it exists.",
    ),
    Option(
        "scenario-manifest",
        ("scenario_manifest",),
        "text",
        "Scenario manifest: the scenarios that every run must contain. Default: "
        "agent-eval-scenarios.toml, if it exists.",
    ),
    Option(
        "quarantine",
        ("quarantine_file",),
        "text",
        "File of quarantined scenarios, in addition to the configuration file's.",
    ),
    Option(
        "comment",
        ("publish", "comment"),
        "choice",
        "When to post or update the pull request comment: update (every run), on-failure, "
        "on-change (of the verdict or of the failing scenarios), off.",
        ("update", "on-failure", "on-change", "off"),
    ),
    Option(
        "comment-author",
        ("publish", "comment_author"),
        "text",
        "Login of the author of the comments. Required only with the token of your own GitHub App.",
    ),
    Option(
        "check-run",
        ("publish", "check_run"),
        "flag",
        "Create a check run with annotations.",
    ),
    Option(
        "max-annotations",
        ("publish", "max_annotations"),
        "count",
        "Maximum number of annotations, 0 to 5000 (default 200): one per scenario first, then by "
        "severity.",
    ),
    Option(
        "check-name",
        ("publish", "check_name"),
        "text",
        "Name of the check run. Select it as the required check in branch protection.",
    ),
    Option(
        "report-url",
        ("publish", "report_url"),
        "text",
        "Address of the uploaded report.html, such as the output artifact-url of "
        "actions/upload-artifact. Comment and check run link each failure to its conversation "
        "there. https only, without #.",
    ),
)

INPUT_OPTIONS = tuple(
    option
    for option in OPTIONS
    if option.name in {"suite", "baseline", "comment", "check-run", "check-name", "report-url"}
)
"""The options that are inputs of the action: those in which the jobs of a repository differ."""


def check_format(name: str) -> str:
    """Return the name of a report format; raises ValueError if no package has it."""
    if name not in OWN_FORMATS:
        from ci_agent_eval.config.entry_points import FORMATS, list_extensions  # noqa: PLC0415 - start-up

        installed = list_extensions(FORMATS)
        if name not in installed:
            known = ", ".join((*OWN_FORMATS, *installed))
            raise ValueError(f"unknown format {name!r}; known formats: {known}")
    return name
