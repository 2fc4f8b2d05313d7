from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.github.rig import Rig, open_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    yield from open_rig(tmp_path)
