"""Conditions of a run: the hashes of the files that its tests read."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.results import UNKNOWN_DIGEST
from ci_agent_eval.storage.start_conditions import hash_file_if_readable


@pytest.mark.parametrize(
    "name",
    [".env", ".env.local", "client_secret.json", "API_KEY.txt", "server.pem", ".db_password"],
)
def test_no_hash_of_a_secret_file(tmp_path, name):
    (tmp_path / name).write_text("hunter2")
    assert hash_file_if_readable(tmp_path / name) == "set"
    (tmp_path / name).unlink()
    assert hash_file_if_readable(tmp_path / name) is None


def test_other_files_have_hashes(tmp_path):
    file = tmp_path / "environment.txt"
    file.write_text("a")
    first = hash_file_if_readable(file)
    file.write_text("b")
    assert len({first, hash_file_if_readable(file), "set", None}) == 4


def test_a_huge_file_counts_as_changed(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1024**3 + 1)
    assert hash_file_if_readable(tmp_path / "huge") == UNKNOWN_DIGEST
