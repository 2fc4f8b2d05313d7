"""The page's own files: no way from data to markup, and colours that can be read."""

from __future__ import annotations

import base64
import hashlib
import re

from ci_agent_eval.render.html import assets
from tests.tables import each_row

PAIRS = [
    (ink, paper)
    for ink in ("text", "muted", "accent", "passed", "failed", "warning", "agent")
    for paper in ("card", "page", "sunken")
] + [
    (ink, f"{ink}-soft") for ink in ("passed", "failed", "error", "skipped", "warning", "agent")
] + [("muted", "skipped-soft"), ("text", "failed-soft"), ("text", "error-soft"),
     ("text", "warning-soft"), ("card", "accent"), ("text", "skipped-soft")]  # fmt: skip


def colours():
    """Return the variables of both schemes."""
    blocks = re.findall(r":root \{(.*?)\}", assets.read_style(), re.DOTALL)[:2]
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    return {"light": light, "dark": light | dark}


def luminance(colour):
    """Return the relative luminance (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@each_row("scheme", ["light", "dark"])
@each_row(("ink", "paper"), PAIRS)
def test_text_can_be_read_in_both_schemes(scheme, ink, paper):
    known = colours()[scheme]
    low, high = sorted((luminance(known[ink]), luminance(known[paper])))
    assert (high + 0.05) / (low + 0.05) >= 4.5


@each_row(
    "word",
    ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
     "fetch(", "XMLHttpRequest", "import(", 'setTimeout("', ".on", "</", "<!--"],
)  # fmt: skip
def test_the_script_has_no_way_from_text_to_markup_nor_to_the_network(word):
    script = assets.read_script()
    if word == ".on":
        assert not re.search(r"\.on[a-z]+\s*=", script)
    else:
        assert word not in script


def test_the_style_loads_nothing():
    assert not re.search(r"url\(|@import|expression\(|</", assets.read_style())


def test_the_template_holds_no_style_nor_handler_of_its_own():
    for name in assets.TEMPLATES:
        source = assets._read_asset(name)
        assert not re.search(r"\sstyle=|\son\w+=|\|\s*safe|autoescape", source), name


def test_the_policy_allows_these_very_files_and_nothing_else():
    policy = assets.content_policy("alert(1)", "p {}")
    digest = base64.b64encode(hashlib.sha256(b"alert(1)").digest()).decode()
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
