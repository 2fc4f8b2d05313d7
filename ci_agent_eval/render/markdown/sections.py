"""The sections of the Markdown report, in the order in which a reader meets them."""

from __future__ import annotations

from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown import comparison, details, evaluations, failures, trend, waivers
from ci_agent_eval.render.markdown.section import Section


def sections(report: Report, links: Links) -> tuple[Section, ...]:
    """Return the sections that have something to say."""
    built = (
        comparison.figures(report),
        failures.failing(report, links),
        comparison.against(report, links),
        failures.tests(report, links),
        failures.errors(report, links),
        failures.skipped(report, links),
        failures.known(report, links),
        failures.overruns(report, links),
        failures.findings(report),
        comparison.changed_ways(report),
        comparison.other_ways(report),
        comparison.moved(report),
        details.assertions(report, links),
        details.outputs(report),
        evaluations.conversations(report, links),
        evaluations.failures(report, links),
        details.advisory(report, links),
        waivers.quarantined(report, links),
        waivers.acknowledged(report),
        details.warnings(report, links),
        details.flaky(report, links),
        details.passing(report, links),
        details.iterations(report),
        trend.trend(report),
        details.sources(report),
    )
    return tuple(section for section in built if section.total)
