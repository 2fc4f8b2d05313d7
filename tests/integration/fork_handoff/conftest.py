from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github_fake import FakeGitHub
from tests.integration.github.rig import TOKEN, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Whatever a test does: nothing it sends breaks GitHub's description, no token in sight."""
    with FakeGitHub() as fake:
        rig = Rig(fake, tmp_path)
        yield rig
        assert fake.violations == []
        assert TOKEN not in rig.everything_said()
