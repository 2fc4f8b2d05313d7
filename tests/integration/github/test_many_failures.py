"""However much failed: the comment comes early, and few requests carry the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.app.report_publication import build_publication
from ci_agent_eval.config.options import Settings
from ci_agent_eval.gate.report import Report
from ci_agent_eval.github.publication import Publication
from ci_agent_eval.render.links import Links
from tests.builders import failing, report
from tests.integration.github.rig import REPO, Rig

LEFT_OUT = "Left out: {} annotations; at most {} are published (`max_annotations`)."


def shown(of: Report, **publish: int) -> Publication:
    settings = Settings.model_validate({"publish": publish})
    links = Links(server_url="https://github.com", repository=REPO)
    return build_publication(of, links, settings, Path("agent-eval-report"))


def plain_failures(number: int) -> Report:
    """A run of plain tests that all failed."""
    cases = tuple(
        JUnitCase("shop", f"test_{n:06}", "failed", "no", file="tests/test_shop.py", line=n)
        for n in range(1, number + 1)
    )
    return report(tests=PlainTests(OutcomeTally(failed=number), cases))


def scenarios_that_failed(number: int) -> Report:
    return report(*(failing(f"s{n:04}") for n in range(number)))


@pytest.mark.parametrize(
    ("of", "left_out"),
    [(lambda: scenarios_that_failed(500), "300"), (lambda: plain_failures(10_000), "9,800")],
    ids=["scenarios", "tests"],
)
def test_the_comment_comes_before_the_200_annotations(
    rig: Rig, of: Callable[[], Report], left_out: str
):
    result = rig.publish(shown(of()))

    assert not result.has_failures
    sent = [f"{one.method} {one.path.rpartition('/')[2]}" for one in rig.fake.writes]
    (run,) = rig.check_runs
    assert sent == ["POST check-runs", "POST comments", *[f"PATCH {run.id}"] * 5]
    assert rig.naps == []
    assert len(run.annotations) == 200
    assert LEFT_OUT.format(left_out, 200) in run.summary
    assert LEFT_OUT.format(left_out, 200) in rig.everything_said()
    assert run.conclusion == "failure"


def test_the_number_is_a_setting(rig: Rig):
    of = scenarios_that_failed(5)
    rig.publish(shown(of, max_annotations=3))
    (run,) = rig.check_runs
    assert [one["title"] for one in run.annotations] == [f"s000{n}: says sorry" for n in range(3)]
    assert LEFT_OUT.format(2, 3) in run.summary

    rig.publish(shown(of, max_annotations=0))
    assert rig.check_runs[-1].annotations == []
    assert LEFT_OUT.format(5, 0) in rig.check_runs[-1].summary
