"""Options: all variables with a prefix, over the lines of `.env`, over a TOML file."""

import os
import tomllib

from shopdesk.prompts import ROOT

PREFIX = "SHOPDESK_OPT_"


def load_options():
    options = dict(tomllib.loads((ROOT / "shopdesk.toml").read_text("utf-8"))["desk"])
    local = ROOT / ".env"
    lines = local.read_text("utf-8").splitlines() if local.is_file() else []
    pairs = [line.split("=", 1) for line in lines] + list(os.environ.items())
    options.update(
        {
            name.removeprefix(PREFIX).lower(): value
            for name, value in pairs
            if name.startswith(PREFIX)
        }
    )
    return dict(sorted(options.items()))


def show_options(desk: str) -> str:
    """Show the options of a desk."""
    return f"{desk}: {load_options()}"
