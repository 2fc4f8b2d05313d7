"""Templates, cached by one environment."""

import jinja2

from shopdesk.prompts import ROOT
from shopdesk.text import format_money

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(ROOT / "templates"), auto_reload=False, autoescape=False
)
ENVIRONMENT.filters["money"] = format_money


def render_template(name, **values):
    return ENVIRONMENT.get_template(name).render(values)
