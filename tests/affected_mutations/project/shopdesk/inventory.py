"""Names, sizes and modes of files, without their content."""

import configparser
import os
from pathlib import Path

from shopdesk.prompts import ROOT


def list_depots(region: str) -> str:
    """List the depots of a region."""
    found = [
        name for _, folders, files in os.walk(ROOT / "data/regions") for name in folders + files
    ]
    return f"{region}: {sorted(found)}"


def check_flag(flag: str) -> str:
    """Check whether a flag is set."""
    return f"{flag} {os.path.exists(ROOT / 'data/flags' / flag)}"


def measure_file(name: str) -> str:
    """Measure a file by name."""
    return f"{name} {os.path.getsize(ROOT / 'data' / name)}"


def check_script(name: str) -> str:
    """Check whether a script can be run."""
    return f"{name} {os.access(ROOT / 'data' / name, os.X_OK)}"


def resolve_policy(name: str) -> str:
    """Resolve the link of a policy."""
    return f"{name} {Path(os.readlink(ROOT / 'prompts/policy.md')).name}"


def read_hours(day: str) -> str:
    """Read the hours of a day from the first configuration that there is."""
    parser = configparser.ConfigParser()
    parser.read([ROOT / "desk.defaults", ROOT / "data/hours.local"], encoding="utf-8")
    return f"{day} {dict(parser['hours']) if parser.has_section('hours') else 'unknown'}"


def read_manual(page: str) -> str:
    """Read a page of the manual, byte by byte."""
    content = (ROOT / "prompts/raw.txt").read_bytes() + (ROOT / "prompts/manual.txt").read_bytes()
    return f"{page} {content.hex()}"


def show_source(tool: str) -> str:
    """Show the source of a tool."""
    import inspect

    from shopdesk import shown

    return f"{tool} {inspect.getsource(shown.shown_tool)!r}"
