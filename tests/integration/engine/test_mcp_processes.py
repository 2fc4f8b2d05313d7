"""However a suite ends, no server, no command and no child of theirs is left."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import wait_for
from tests.servers.rig import HERE, is_there, wait_until_gone

PYTEST = ["-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:randomly", "-c"]


@contextmanager
def suite(folder: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, *PYTEST, str(folder / "pytest.ini"), str(HERE / "hold.py")]
    root = str(HERE.parents[1])
    environ = {**os.environ, "HOW": how, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_after_a_suite_that_ends_by_itself(tmp_path: Path) -> None:
    with suite(tmp_path, "fail") as process:
        wait_for(process, "ready")
        assert process.wait(600) == 1
        pids = json.loads((tmp_path / "pids.json").read_text())
        assert not any(map(is_there, pids)), "gone before the suite was, not some time later"


def test_after_it_was_killed(tmp_path: Path) -> None:
    with suite(tmp_path, "wait") as process:
        wait_for(process, "ready")
        process.kill()
        assert process.wait(600) == -signal.SIGKILL
        pids = json.loads((tmp_path / "pids.json").read_text())
        assert len(set(pids)) == 5
        for pid in pids:
            wait_until_gone(pid)
        assert not any(map(is_there, pids))
