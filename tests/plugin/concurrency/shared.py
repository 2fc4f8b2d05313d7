"""A suite that writes down which fixtures were alive, and a run of it at both concurrencies."""

from __future__ import annotations

from tests.plugin.conftest import SCRIPTED_CLOCK

WATCH = (
    SCRIPTED_CLOCK
    + """
import json
import sys
sys.path.insert(0, ".")

class Log:
    def __init__(self):
        self.alive = []
        self.told = []

    def up(self, name):
        self.alive.append(name)
        self.told.append(f"up {name}")

    def down(self, name):
        self.alive.remove(name)
        self.told.append(f"down {name}")

@pytest.fixture(scope="session")
def log(request):
    made = Log()
    yield made
    assert made.alive == []
    (request.config.rootpath / "told.json").write_text(json.dumps(made.told))
"""
)


def run(suite, arguments=(), **outcomes):
    """Run at both; return what was told at 1 and at 8."""
    found = []
    for concurrency in (1, 8):
        suite.pytester.makepyfile(concurrency=f"IS_CONCURRENT = {concurrency > 1}")
        ran = suite.run(f"--episode-concurrency={concurrency}", *arguments)
        ran.result.assert_outcomes(**outcomes)
        files = sorted(suite.pytester.path.glob("told*.json"))
        found.append("".join(file.read_text() for file in files))
    return found


MODULE = """
import asyncio
import pytest

@pytest.fixture(scope="module")
def floor(log):
    log.up("floor"); yield []; log.down("floor")

@pytest.mark.parametrize("number", range(5))
async def test_one(episode, log, floor, number):
    for _ in range(10):
        assert log.alive.count("floor") == 1
        await asyncio.sleep(0)
    floor.append(number)

async def test_last(episode, floor):
    floor.append("last")
"""
