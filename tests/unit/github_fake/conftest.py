"""A fake GitHub with a repository, a pull request and tokens."""

from collections.abc import Iterator

import pytest

from tests.github_fake import FakeGitHub
from tests.unit.github_fake.rig import HEAD, REPO


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        server.token("ghs_bot")
        server.token("ghp_mona", "mona")
        server.token("ghs_reader", can_write=False)
        server.add_repo(REPO)
        server.add_pull(REPO, 7, HEAD, head_ref="fix", merge_commit_sha="d" * 40)
        yield server
