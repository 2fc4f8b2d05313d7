"""`agent-eval` in the test's own folder, and runs of the example for the tests of a module."""

from __future__ import annotations

import pytest

from tests.integration.command_server import run_agent_eval
from tests.integration.refund_desk import copy_desk, run_desk


@pytest.fixture
def agent_eval(tmp_path):
    """Run `agent-eval` in the test's folder; keywords are environment variables."""

    def run(*arguments, cwd=tmp_path, **environ):
        return run_agent_eval(*arguments, cwd=cwd, **environ)

    return run


@pytest.fixture
def desk(tmp_path):
    return copy_desk(tmp_path)


@pytest.fixture(scope="module")
def failed_desk(tmp_path_factory):
    return run_desk(tmp_path_factory.mktemp("failed"), mended=False)


@pytest.fixture(scope="module")
def passed_desk(tmp_path_factory):
    return run_desk(tmp_path_factory.mktemp("passed"), mended=True)
