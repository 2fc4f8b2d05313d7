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


def _option(
    key: str,
    help: str,  # noqa: A002 - the field's name
    kind: OptionKind = "text",
    *,
    name: str | None = None,
    choices: tuple[str, ...] = (),
) -> Option:
    """Make an option of its dotted key, whose last part gives the name unless another is given."""
    path = tuple(key.split("."))
    return Option(name or path[-1].replace("_", "-"), path, kind, help, choices)


OPTIONS: tuple[Option, ...] = (
    _option("suite", "Name of the suite. Each suite has its own comment and check run."),
    _option(
        "title",
        "First words of the headline, at most 40 characters. Default: Agent evals; Tests, if "
        "there are no episodes.",
    ),
    _option("report_dir", "Folder of the report."),
    _option(
        "formats", "Additional formats of the report: ctrf, or a format of an installed package."
    ),
    _option(
        "gate.min_pass_rate",
        "Minimum pass rate of a scenario's judged iterations, 0 to 1. A scenario's own "
        "min_pass_rate takes precedence.",
        "number",
    ),
    _option(
        "gate.suite_min_pass_rate",
        "Minimum pass rate of all strict required scenarios together, 0 to 1. If set, a "
        "failing scenario fails the gate only if it has its own min_pass_rate. If not set, "
        "every required scenario must pass.",
        "number",
    ),
    _option(
        "gate.max_error_rate",
        "Maximum share of required episodes with an infrastructure error, 0 to 1.",
        "number",
    ),
    _option(
        "gate.allow_skipped",
        "Pass the gate even if iterations of a required scenario were skipped.",
        "flag",
    ),
    _option(
        "gate.passed_on_retry",
        "Outcome of a JUnit test that failed and then passed on a retry: passed, flaky "
        "(passes and is listed; the default) or failed.",
        "choice",
        choices=("passed", "flaky", "failed"),
    ),
    _option(
        "gate.eval_min_pass_rate",
        "Minimum pass rate of all evaluation conversations, 0 to 1. Unset: they do not gate.",
        "number",
    ),
    _option(
        "gate.eval_min_score",
        "Minimum average score of the evaluations, 0 to 1. Unset: they do not gate.",
        "number",
    ),
    _option(
        "gate.score_thresholds",
        "Thresholds of the scores in other tools' results, such as 'faithfulness>=0.8 "
        "noise<=0.2'; '*' is every score without its own. A result with scores alone needs "
        "one to pass.",
    ),
    _option(
        "mapping",
        "File that describes results of other formats: where their records have id, outcome "
        "and scores.",
    ),
    _option(
        "budgets.total_cost_usd",
        "Hard budget of the whole suite in US dollars. The run stops when it is exceeded.",
        "number",
    ),
    _option(
        "budgets.total_tokens",
        "Hard budget of the whole suite in tokens. The run stops when it is exceeded.",
        "count",
    ),
    _option(
        "budgets.total_wall_time_s",
        "Hard budget of the whole suite in seconds. The run stops when it is exceeded.",
        "number",
    ),
    _option(
        "compare.baseline",
        "Runs to compare with: a results file, a report folder, a folder or glob of several, "
        "git:REF:PATH, or artifact (the latest runs of the base branch). Unset: no "
        "comparison.",
    ),
    _option(
        "compare.runs",
        "Maximum number of baseline runs; the latest ones are used.",
        "count",
        name="baseline-runs",
    ),
    _option(
        "compare.artifact",
        "Name or glob of the artifacts that `baseline: artifact` reads.",
        name="baseline-artifact",
    ),
    _option(
        "compare.level",
        "Significance level of the regression test: the accepted false-alarm rate for an "
        "unchanged suite.",
        "number",
        name="compare-level",
    ),
    _option(
        "compare.min_drop",
        "Smallest drop in pass rate, 0 to 1, that a run must be able to detect. If it cannot,"
        " the result is inconclusive.",
        "number",
        name="compare-min-drop",
    ),
    _option(
        "compare.across",
        "Conditions that may differ between compared runs: model, tools, prices, judge. By "
        "default all but judge.",
        name="compare-across",
    ),
    _option(
        "compare.gate",
        "Effect of regressions and of a drop of the suite on the gate: fail or warn.",
        "choice",
        name="compare-gate",
        choices=("fail", "warn"),
    ),
    _option(
        "compare.confirm",
        "Before a run fails by a drop against the baseline, run the scenarios in doubt again,"
        " on the merge base and on this commit in turn; a drop that this does not confirm is "
        "a warning.",
        "flag",
    ),
    _option(
        "compare.confirm_base",
        "Branch or commit; its merge base with HEAD is the base of confirm. Default: the pull"
        " request's base branch, else the branch or commit of the baseline.",
    ),
    _option(
        "compare.max_cost_increase",
        "Maximum relative increase of the cost per episode over the baseline (0.2 = +20 %). "
        "Unset: no limit.",
        "number",
    ),
    _option(
        "compare.max_latency_increase",
        "Maximum relative increase of the p95 turn latency over the baseline (0.2 = +20 %). "
        "Unset: no limit.",
        "number",
    ),
    _option(
        "compare.max_typical_latency_increase",
        "Maximum relative increase of the typical turn latency, the geometric mean over all "
        "scenarios, over the baseline (0.2 = +20 %). Unset: no limit.",
        "number",
    ),
    _option(
        "compare.max_scenario_cost_increase",
        "Maximum relative increase of the cost of any one scenario over the baseline (1.0 = "
        "twice as much). Unset: no limit.",
        "number",
    ),
    _option(
        "compare.max_scenario_latency_increase",
        "Maximum relative increase of the typical turn latency of any one scenario over the "
        "baseline (1.0 = twice as long). Unset: no limit.",
        "number",
    ),
    _option(
        "acknowledged",
        "File of acknowledged regressions, each with an expiry date. Default: "
        "agent-eval-acknowledged.toml, if it exists.",
        name="acknowledge",
    ),
    _option(
        "scenario_manifest",
        "Scenario manifest: the scenarios that every run must contain. Default: "
        "agent-eval-scenarios.toml, if it exists.",
    ),
    _option(
        "quarantine_file",
        "File of quarantined scenarios, in addition to the configuration file's.",
        name="quarantine",
    ),
    _option(
        "publish.comment",
        "When to post or update the pull request comment: update (every run), on-failure, "
        "on-change (of the verdict or of the failing scenarios), off.",
        "choice",
        choices=("update", "on-failure", "on-change", "off"),
    ),
    _option(
        "publish.comment_author",
        "Login of the author of the comments. Required only with the token of your own GitHub App.",
    ),
    _option("publish.check_run", "Create a check run with annotations.", "flag"),
    _option(
        "publish.max_annotations",
        "Maximum number of annotations, 0 to 5000 (default 200): one per scenario first, then"
        " by severity.",
        "count",
    ),
    _option(
        "publish.check_name",
        "Name of the check run. Select it as the required check in branch protection.",
    ),
    _option(
        "publish.report_url",
        "Address of the uploaded report.html, such as the output artifact-url of "
        "actions/upload-artifact. Comment and check run link each failure to its conversation"
        " there. https only, without #.",
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
