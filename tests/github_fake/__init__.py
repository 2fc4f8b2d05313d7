"""A stateful GitHub API on loopback that holds every request against GitHub's own description."""

from tests.github_fake.faults import LASTING_FAULTS, PASSING_FAULTS, FaultKind
from tests.github_fake.server import FakeGitHub

__all__ = ["LASTING_FAULTS", "PASSING_FAULTS", "FakeGitHub", "FaultKind"]
