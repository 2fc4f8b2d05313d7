"""Builders of runs that carried over results of an earlier run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ci_agent_eval.app.pipeline import Job
from ci_agent_eval.config.settings import Settings
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.dependencies import Dependencies, NamedVersion
from ci_agent_eval.contract.episode import CarriedOver, Episode
from ci_agent_eval.contract.results import CarriedScenario, Session
from ci_agent_eval.dependencies.selection.model import FullRun, Selection
from ci_agent_eval.results.baselines.request import EarlierRun
from tests.builders import episode, write_run

BASE_COMMIT = "a1b2c3d" + "0" * 33
BEGAN = 1_780_000_000
DAY = 86_400
ORIGIN = CarriedOver(run="123", commit=BASE_COMMIT, recorded_at=BEGAN)


def dependencies(**overrides: Any) -> Dependencies:
    """What the earlier run recorded of its conditions."""
    fields: dict[str, Any] = {
        "commit": BASE_COMMIT,
        "recorded_at": BEGAN,
        "python": "CPython 3.13.0",
        "platform": "linux-x86_64",
        "distributions": (NamedVersion("pytest-9.2.0.dist-info", "9f"),),
        **overrides,
    }
    return Dependencies.model_validate(fields)


def carried(item: Episode, **overrides: Any) -> Episode:
    """The same episode, as a later run carries it over."""
    return item.model_copy(update={"carried_over": ORIGIN, **overrides})


def write_earlier_run(
    folder: Path, *episodes: Episode, recorded: Dependencies | None = None, **fields: Any
) -> Path:
    """Write a run of the base, with its dependencies; `fields` are those of its session."""
    values = {"commit": BASE_COMMIT, "run": ORIGIN.run, "selected": len(episodes), **fields}
    session = Session.model_validate({"state": "finished", **values})
    write_run(folder, *episodes, session=session)
    _write_dependencies(folder, recorded or dependencies())
    return folder


def write_later_run(
    folder: Path,
    *episodes: Episode,
    names: Sequence[str] | None = None,
    recorded: Dependencies | None = None,
    iterations: int = 1,
    **fields: Any,
) -> Path:
    """Write a run that left out scenarios: those of its carried-over episodes, or `names`."""
    if names is None:
        names = sorted({one.scenario_id for one in episodes if one.carried_over})
    left_out = [CarriedScenario(scenario_id=name, iterations=iterations) for name in names]
    ran = sum(1 for one in episodes if one.carried_over is None)
    session = Session.model_validate(
        {"state": "finished", "selected": ran, "carried": left_out, **fields}
    )
    write_run(folder, *episodes, session=session)
    _write_dependencies(folder, recorded or dependencies(commit="f" * 40))
    return folder


def _write_dependencies(folder: Path, recorded: Dependencies) -> None:
    (folder / "dependencies.json").write_text(canonical_json(recorded), encoding="ascii")


@dataclass(frozen=True)
class Selecting:
    """A selection that Git shows, without Git."""

    unchanged: Collection[str] = ()
    full_run: FullRun | None = None
    seen: list[EarlierRun] = field(default_factory=list)

    def __call__(self, earlier: EarlierRun) -> Selection:
        self.seen.append(earlier)
        return Selection(unchanged=tuple(self.unchanged), full_run=self.full_run)


def build_carrying_job(
    root: Path,
    *unchanged: str,
    full_run: FullRun | None = None,
    environ: Mapping[str, str] | None = None,
    baseline: str | None = "base",
    **overrides: Any,
) -> Job:
    """The job of a report on `root`, two days after the earlier run in `base`."""
    settings = Settings()
    compare = settings.compare.model_copy(update={"baseline": baseline})
    job = Job(
        settings.model_copy(update={"compare": compare}),
        root=root,
        environ=environ or {},
        now=BEGAN + 2 * DAY,
        select=Selecting(unchanged, full_run),
    )
    return replace(job, **overrides)


REFUND = episode("refund", duration_ms=60_000, cost_usd=0.5)
CANCEL = episode("cancel")
GREET = episode("greet")
