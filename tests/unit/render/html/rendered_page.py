"""The HTML report of some episodes as text, and the data in it."""

from __future__ import annotations

import json
import re

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.html.page_limits import PageLimits
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import report
from tests.render_reports import LINKS


def pieces(*episodes, built=None, caps=None, links=LINKS, budgets=None, samples=()):
    ordered = sorted(episodes, key=lambda item: item.key)
    return render_html(
        build_report_view(built or report(*ordered), links),
        [build_episode_record(item) for item in ordered],
        map(canonical_json, ordered),
        budgets=budgets or SuiteBudgets(),
        samples=samples,
        caps=caps or PageLimits(),
    )


def page(*episodes, **options):
    return "".join(pieces(*episodes, **options))


def data(text, name):
    """Return the data of one of the page's lists."""
    return json.loads(re.search(f'id="{name}-data">(.*?)</script>', text, re.DOTALL)[1])


def left_out(text):
    found = re.search(r'id="left-out".*?<ul>(.*?)</ul>', text, re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", found[1]) if found else []
