"""The sections of the Markdown report, in the order in which a reader meets them."""

from __future__ import annotations

from ci_agent_eval.render import evaluations, folded, trouble, views
from ci_agent_eval.render.blocks import Column
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.section import Section, of_table
from ci_agent_eval.report import Report


def sections(report: Report, links: Links) -> tuple[Section, ...]:
    """Return the sections that have something to say."""
    built = (
        figures(report),
        trouble.failing(report, links),
        trouble.tests(report, links),
        trouble.errors(report, links),
        trouble.skipped(report, links),
        trouble.overruns(report, links),
        trouble.findings(report),
        folded.assertions(report, links),
        folded.outputs(report),
        evaluations.conversations(report, links),
        evaluations.failures(report, links),
        folded.advisory(report, links),
        folded.warnings(report, links),
        folded.flaky(report, links),
        folded.passing(report, links),
        folded.iterations(report),
        folded.sources(report),
    )
    return tuple(section for section in built if section.total)


def figures(report: Report) -> Section:
    """Return the figures of the suite that were measured."""
    # A comparison adds its columns here.
    found = list(views.figures(report))
    columns = (Column("figure"), Column("this run", figures=True))
    return Section(
        "figures",
        "Figures",
        ("figure", "figures"),
        len(found),
        of_table(columns, found, lambda figure: figure),
    )
