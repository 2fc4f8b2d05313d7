"""Real coding agents with hook and proxy: a full run is held once, and the agent goes on.

`AGENTS` narrows the agents; `UPDATE_GOLDEN=1` records the rows of docs/steering.md.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.steering_agents.agents import (
    PACKAGES,
    Seen,
    find_version,
    run_with_hook,
    run_with_proxy,
)
from tests.steering_agents.page import PAGE, REASONS, ROWS, render_table

NETWORK_DEVICES = Path("/proc/net/dev")
NAMES = os.environ.get("AGENTS", "").split() or list(PACKAGES)


def check_row(agent: str, where: str, seen: Seen) -> None:
    """Compare what was seen with the goal, or with the known reason, and with the recorded row."""
    cells = seen.cells()
    details = f"{seen.results}\n{seen.output[-3000:]}"
    if (agent, where) in REASONS:
        assert not cells["held"], f"delete the reason: {details}"
    else:
        assert all(cells.values()), f"{cells}\n{details}"
    row = {"version": find_version(agent), **cells, "tries_other_hosts": bool(seen.other_hosts)}
    rows = json.loads(ROWS.read_text())
    if os.environ.get("UPDATE_GOLDEN"):
        rows = dict(sorted({**rows, f"{agent}-{where}": row}.items()))
        ROWS.write_text(json.dumps(rows, indent=2) + "\n")
    recorded = rows[f"{agent}-{where}"].copy()
    # Some agents try on some days only.
    assert recorded.pop("tries_other_hosts") >= row.pop("tries_other_hosts"), seen.other_hosts
    assert row == recorded


@pytest.mark.parametrize("agent", NAMES)
def test_the_hook_holds_a_full_run_once(agent, tmp_path):
    check_row(agent, "hook", run_with_hook(agent, tmp_path))


@pytest.mark.parametrize("agent", NAMES)
def test_the_proxy_holds_a_full_run_once(agent, tmp_path):
    check_row(agent, "proxy", run_with_proxy(agent, tmp_path))


def test_the_page_has_the_recorded_table():
    if os.environ.get("UPDATE_GOLDEN"):
        pytest.skip("the page is written after the rows")
    assert render_table() in PAGE.read_text()


def test_the_loopback_is_the_only_network():
    """Where there are no namespaces, other hosts are refused by the recording proxy only."""
    assert os.environ["NETWORK"] in {"namespace", "proxy"}
    if os.environ["NETWORK"] == "namespace":
        links = [
            line.split(":")[0].strip() for line in NETWORK_DEVICES.read_text().splitlines()[2:]
        ]
        assert links == ["lo"]
