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
from tests.tables import each_row

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


def check_all_gone(folder: Path) -> None:
    pids = json.loads((folder / "pids.json").read_text())
    assert len(set(pids)) == 5
    for pid in pids:
        wait_until_gone(pid)
    assert not any(map(is_there, pids))


@each_row(("how", "code"), [("pass", 0), ("fail", 1)])
def test_after_a_suite_that_ends_by_itself(tmp_path: Path, how: str, code: int) -> None:
    with suite(tmp_path, how) as process:
        wait_for(process, "ready")
        assert process.wait(600) == code
        pids = json.loads((tmp_path / "pids.json").read_text())
        assert not any(map(is_there, pids)), "gone before the suite was, not some time later"


@each_row(
    ("number", "code"),
    [(signal.SIGINT, 2), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_after_a_signal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with suite(tmp_path, "wait") as process:
        wait_for(process, "ready")
        process.send_signal(number)
        assert process.wait(600) == code
        check_all_gone(tmp_path)


def test_ctrl_c_twice_leaves_nothing_either(tmp_path: Path) -> None:
    with suite(tmp_path, "wait") as process:
        wait_for(process, "ready")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.wait(600)
        check_all_gone(tmp_path)
