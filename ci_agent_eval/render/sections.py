"""The sections of the Markdown report, in the order in which a reader meets them."""

from __future__ import annotations

from ci_agent_eval.render import against, agreed, evaluations, folded, trend, trouble
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.section import Section
from ci_agent_eval.report import Report


def sections(report: Report, links: Links) -> tuple[Section, ...]:
    """Return the sections that have something to say."""
    built = (
        against.figures(report),
        trouble.failing(report, links),
        against.against(report, links),
        trouble.tests(report, links),
        trouble.errors(report, links),
        trouble.skipped(report, links),
        trouble.known(report, links),
        trouble.overruns(report, links),
        trouble.findings(report),
        against.changed_ways(report),
        against.other_ways(report),
        against.moved(report),
        folded.assertions(report, links),
        folded.outputs(report),
        evaluations.conversations(report, links),
        evaluations.failures(report, links),
        folded.advisory(report, links),
        agreed.quarantined(report, links),
        agreed.acknowledged(report),
        folded.warnings(report, links),
        folded.flaky(report, links),
        folded.passing(report, links),
        folded.iterations(report),
        trend.trend(report),
        folded.sources(report),
    )
    return tuple(section for section in built if section.total)
