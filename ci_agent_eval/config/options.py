"""The settings: one model makes configuration keys, environment variables, flags and inputs.

The environment variable of a setting is `AGENT_EVAL_<NAME>` and its flag `--<name>`. Those of
`INPUT_OPTIONS` are inputs of the action too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import AfterValidator, Field, field_validator
from pydantic.fields import FieldInfo

from ci_agent_eval.analysis.comparison.model import AllowedIncreases, ComparePolicy
from ci_agent_eval.contract.base import KnownKeysModel, Rate, ReportTitle
from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import PassedOnRetry
from ci_agent_eval.contract.scenario_manifest import MANIFEST_NAME, QuarantineEntry
from ci_agent_eval.gate.model import GatePolicy

ACKNOWLEDGED_NAME = "agent-eval-acknowledged.toml"
DEFAULT_ARTIFACT = "agent-eval-report"
"""Artifact name of the report folder in the documented workflows."""

OWN_FORMATS = ("ctrf",)
"""The built-in additional formats of reports."""

OptionKind = Literal["text", "flag", "number", "count", "choice"]

_FLAG = "flag"


def _setting(default: Any, text: str, *, name: str | None = None, **rules: Any) -> Any:
    """Return a field that is also a flag and an environment variable, with the help `text`.

    `name` is the flag's, if it is not the key's.
    """
    return Field(default=default, description=text, json_schema_extra={_FLAG: name}, **rules)


def split_words(value: Any) -> Any:
    """Split a text at whitespace and commas; return other values unchanged."""
    return tuple(re.split(r"[\s,]+", value.strip(" ,"))) if isinstance(value, str) else value


class GateSettings(KnownKeysModel):
    """`[gate]`: requirements of a passing run."""

    min_pass_rate: Rate = _setting(
        1.0,
        "Minimum pass rate of a scenario's judged iterations, 0 to 1. A scenario's own "
        "min_pass_rate takes precedence.",
    )
    suite_min_pass_rate: Rate | None = _setting(
        None,
        "Minimum pass rate of all strict required scenarios together, 0 to 1. If set, a failing "
        "scenario fails the gate only if it has its own min_pass_rate. If not set, every required "
        "scenario must pass.",
    )
    max_error_rate: Rate = _setting(
        0.0, "Maximum share of required episodes with an infrastructure error, 0 to 1."
    )
    allow_skipped: bool = _setting(
        False, "Pass the gate even if iterations of a required scenario were skipped."
    )
    passed_on_retry: PassedOnRetry = _setting(
        "flaky",
        "Outcome of a JUnit test that failed and then passed on a retry: passed, flaky (passes "
        "and is listed; the default) or failed.",
    )
    eval_min_pass_rate: Rate | None = _setting(
        None,
        "Minimum pass rate of all evaluation conversations, 0 to 1. Unset: they do not gate.",
    )
    eval_min_score: Rate | None = _setting(
        None, "Minimum average score of the evaluations, 0 to 1. Unset: they do not gate."
    )
    score_thresholds: dict[str, Any] = _setting(
        {},
        "Thresholds of the scores in other tools' results, such as 'faithfulness>=0.8 "
        "noise<=0.2'; '*' is every score without its own. A result with scores alone needs one to "
        "pass.",
    )
    """A `ScoreThreshold` for each name."""

    @field_validator("score_thresholds", mode="before")
    @classmethod
    def _parse_thresholds(cls, value: Any) -> Any:
        # Few reports have scores, and each has its start-up time.
        from ci_agent_eval.contract.result_mapping import parse_score_thresholds  # noqa: PLC0415 - see above

        return parse_score_thresholds(value)


def _check_format(name: str) -> str:
    """Return the name of a report format; raises ValueError if no package has it."""
    if name not in OWN_FORMATS:
        from ci_agent_eval.config.entry_points import FORMATS, list_extensions  # noqa: PLC0415 - start-up

        installed = list_extensions(FORMATS)
        if name not in installed:
            known = ", ".join((*OWN_FORMATS, *installed))
            raise ValueError(f"unknown format {name!r}; known formats: {known}")
    return name


ReportFormat = Annotated[str, AfterValidator(_check_format)]

Condition = Literal["model", "tools", "prices", "judge"]

_Increase = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class CompareSettings(KnownKeysModel):
    """`[compare]`: the baseline, the significance of drops, and their effect."""

    baseline: str | None = _setting(
        None,
        "Runs to compare with: a results file, a report folder, a folder or glob of several, "
        "git:REF:PATH, or artifact (the latest runs of the base branch). Unset: no comparison.",
        min_length=1,
    )
    runs: int = _setting(
        10,
        "Maximum number of baseline runs; the latest ones are used.",
        name="baseline-runs",
        ge=1,
        le=1000,
    )
    artifact: str = _setting(
        DEFAULT_ARTIFACT,
        "Name or glob of the artifacts that `baseline: artifact` reads.",
        name="baseline-artifact",
        min_length=1,
    )
    level: float = _setting(
        0.05,
        "Significance level of the regression test: the accepted false-alarm rate for an "
        "unchanged suite.",
        name="compare-level",
        gt=0,
        lt=0.5,
    )
    min_drop: Rate = _setting(
        0.2,
        "Smallest drop in pass rate, 0 to 1, that a run must be able to detect. If it cannot, the "
        "result is inconclusive.",
        name="compare-min-drop",
    )
    across: tuple[Condition, ...] = _setting(
        ("model", "tools", "prices"),
        "Conditions that may differ between compared runs: model, tools, prices, judge. By "
        "default all but judge.",
        name="compare-across",
    )
    gate: Literal["fail", "warn"] = _setting(
        "fail",
        "Effect of regressions and of a drop of the suite on the gate: fail or warn.",
        name="compare-gate",
    )
    confirm: bool = _setting(
        False,
        "Before a run fails by a drop against the baseline, run the scenarios in doubt again, on "
        "the merge base and on this commit in turn; a drop that this does not confirm is a "
        "warning.",
    )
    confirm_base: str | None = _setting(
        None,
        "Branch or commit; its merge base with HEAD is the base of confirm. Default: the pull "
        "request's base branch, else the branch or commit of the baseline.",
        min_length=1,
    )
    max_cost_increase: _Increase | None = _setting(
        None,
        "Maximum relative increase of the cost per episode over the baseline (0.2 = +20 %). "
        "Unset: no limit.",
    )
    max_latency_increase: _Increase | None = _setting(
        None,
        "Maximum relative increase of the p95 turn latency over the baseline (0.2 = +20 %). "
        "Unset: no limit.",
    )
    max_typical_latency_increase: _Increase | None = _setting(
        None,
        "Maximum relative increase of the typical turn latency, the geometric mean over all "
        "scenarios, over the baseline (0.2 = +20 %). Unset: no limit.",
    )
    max_scenario_cost_increase: _Increase | None = _setting(
        None,
        "Maximum relative increase of the cost of any one scenario over the baseline (1.0 = twice "
        "as much). Unset: no limit.",
    )
    max_scenario_latency_increase: _Increase | None = _setting(
        None,
        "Maximum relative increase of the typical turn latency of any one scenario over the "
        "baseline (1.0 = twice as long). Unset: no limit.",
    )

    @field_validator("across", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return split_words(value)

    @property
    def policy(self) -> ComparePolicy:
        """The rules for calling a drop a regression."""
        return ComparePolicy(
            self.level, self.min_drop, across=frozenset(self.across), confirm=self.confirm
        )

    @property
    def increases(self) -> AllowedIncreases:
        """The limits of cost and latency."""
        return AllowedIncreases(
            cost=self.max_cost_increase,
            latency=self.max_latency_increase,
            typical_latency=self.max_typical_latency_increase,
            scenario_cost=self.max_scenario_cost_increase,
            scenario_latency=self.max_scenario_latency_increase,
        )


MAX_PAGE_ADDRESS = 2_000
_PAGE_ADDRESS = re.compile(r"https://[A-Za-z0-9.:\[\]-]+(?:[/?][!-\"$-~]*)?")


def _check_page_address(value: str) -> str:
    if len(value) > MAX_PAGE_ADDRESS or not _PAGE_ADDRESS.fullmatch(value):
        raise ValueError(
            "must be an https address without user name, password, # and blanks, at most 2,000 "
            "characters"
        )
    return value


PageAddress = Annotated[str, AfterValidator(_check_page_address)]
"""The https address of a page, which is published."""


class PublishSettings(KnownKeysModel):
    """`[publish]`: comment, check run and annotations on GitHub."""

    comment: Literal["update", "on-failure", "on-change", "off"] = _setting(
        "update",
        "When to post or update the pull request comment: update (every run), on-failure, "
        "on-change (of the verdict or of the failing scenarios), off.",
    )
    comment_author: str | None = _setting(
        None,
        "Login of the author of the comments. Required only with the token of your own GitHub App.",
    )
    check_run: bool = _setting(True, "Create a check run with annotations.")
    max_annotations: int = _setting(
        200,
        "Maximum number of annotations, 0 to 5000 (default 200): one per scenario first, then by "
        "severity.",
        ge=0,
        le=5000,
    )
    check_name: str = _setting(
        "agent-eval",
        "Name of the check run. Select it as the required check in branch protection.",
        min_length=1,
    )
    report_url: PageAddress | None = _setting(
        None,
        "Address of the uploaded report.html, such as the output artifact-url of "
        "actions/upload-artifact. Comment and check run link each failure to its conversation "
        "there. https only, without #.",
    )


class Settings(KnownKeysModel):
    """All settings from all sources."""

    suite: str = _setting(
        "default",
        "Name of the suite. Each suite has its own comment and check run.",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,127}$",
    )
    """Matrices over models name suites after the model, such as `anthropic/claude-x`."""
    title: ReportTitle | None = _setting(
        None,
        "First words of the headline, at most 40 characters. Default: Agent evals; Tests, if "
        "there are no episodes.",
    )
    report_dir: str = _setting("agent-eval-report", "Folder of the report.", min_length=1)
    formats: tuple[ReportFormat, ...] = _setting(
        (), "Additional formats of the report: ctrf, or a format of an installed package."
    )
    paths: tuple[str, ...] = ()
    """Paths of `run`, for pytest."""
    pytest_args: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    """Episode files of `report`."""
    junit: tuple[str, ...] = ()
    """JUnit XML files of `report`."""
    affected: bool = False
    """Whether only what a change can have affected runs."""
    ignore: tuple[str, ...] = ("docs/*", "README*")
    """Patterns of files that no scenario depends on."""
    gate: GateSettings = Field(default_factory=GateSettings)
    mapping: str | None = _setting(
        None,
        "File that describes results of other formats: where their records have id, outcome and "
        "scores.",
        min_length=1,
    )
    budgets: SuiteBudgets = Field(default_factory=SuiteBudgets)
    compare: CompareSettings = Field(default_factory=CompareSettings)
    acknowledged: str = _setting(
        ACKNOWLEDGED_NAME,
        "File of acknowledged regressions, each with an expiry date. Default: "
        "agent-eval-acknowledged.toml, if it exists.",
        name="acknowledge",
        min_length=1,
    )
    scenario_manifest: str = _setting(
        MANIFEST_NAME,
        "Scenario manifest: the scenarios that every run must contain. Default: "
        "agent-eval-scenarios.toml, if it exists.",
        min_length=1,
    )
    quarantine: tuple[QuarantineEntry, ...] = ()
    quarantine_file: str | None = _setting(
        None,
        "File of quarantined scenarios, in addition to the configuration file's.",
        name="quarantine",
        min_length=1,
    )
    publish: PublishSettings = Field(default_factory=PublishSettings)

    @field_validator("formats", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return split_words(value)

    @property
    def policy(self) -> GatePolicy:
        """The gate's policy."""
        return GatePolicy(
            min_pass_rate=self.gate.min_pass_rate,
            suite_min_pass_rate=self.gate.suite_min_pass_rate,
            max_error_rate=self.gate.max_error_rate,
            allow_skipped=self.gate.allow_skipped,
            eval_min_pass_rate=self.gate.eval_min_pass_rate,
            eval_min_score=self.gate.eval_min_score,
            regressions=self.compare.gate,
            increases=self.compare.increases,
        )

    def for_shard(self) -> Settings:
        """Return the settings of a shard, without requirements of the whole suite."""
        # The suite's accepted error rate does not apply to the errors of one shard.
        errors = 1.0 if self.gate.max_error_rate else 0.0
        unset = {"eval_min_pass_rate": None, "eval_min_score": None, "max_error_rate": errors}
        if self.gate.suite_min_pass_rate is not None:
            unset["suite_min_pass_rate"] = 0.0
        gate = self.gate.model_copy(update=unset)
        return self.model_copy(update={"gate": gate, "budgets": SuiteBudgets()})

    @property
    def check_name(self) -> str:
        """The check run's name; a named suite has a separate check run."""
        name = self.publish.check_name
        return name if self.suite == "default" else f"{name} ({self.suite})"


class Option(NamedTuple):
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


def _list_options(model: type[KnownKeysModel], *tables: str) -> Iterator[Option]:
    """Yield the options of a model, which is at `tables` in the configuration file."""
    for key, field in model.model_fields.items():
        if field.annotation is SuiteBudgets:
            for kind in SUITE_BUDGET_KINDS:
                text = f"Hard budget of the whole suite: {kind.description}. The run stops when it "
                yield Option(
                    kind.name.replace("_", "-"),
                    (key, kind.name),
                    "count" if kind.is_whole else "number",
                    f"{text}is exceeded.",
                )
        elif isinstance(field.annotation, type) and issubclass(field.annotation, KnownKeysModel):
            yield from _list_options(field.annotation, key)
        elif isinstance(extra := field.json_schema_extra, dict) and _FLAG in extra:
            name = extra[_FLAG] or key.replace("_", "-")
            yield _build_option(str(name), (*tables, key), field)


_KINDS: dict[Any, OptionKind] = {bool: "flag", int: "count", float: "number"}


def _build_option(name: str, key: tuple[str, ...], field: FieldInfo) -> Option:
    kind: Any = field.annotation
    if get_origin(kind) in {Union, UnionType}:
        kind = get_args(kind)[0]  # the other one is None
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    text = field.description or ""
    if get_origin(kind) is Literal:
        return Option(name, key, "choice", text, get_args(kind))
    return Option(name, key, _KINDS.get(kind, "text"), text)


OPTIONS: tuple[Option, ...] = tuple(_list_options(Settings))

INPUT_OPTIONS = tuple(
    option
    for option in OPTIONS
    if option.name in {"suite", "baseline", "comment", "check-run", "check-name", "report-url"}
)
"""The options that are inputs of the action: those in which the jobs of a repository differ."""
