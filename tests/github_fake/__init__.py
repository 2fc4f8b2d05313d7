"""A stateful GitHub API on loopback that holds every request against GitHub's own description."""

from tests.github_fake.api import Request
from tests.github_fake.faults import LASTING_FAULTS, PASSING_FAULTS, Fault, FaultKind, Faults
from tests.github_fake.server import FakeGitHub
from tests.github_fake.state import CheckRun, Comment, Pull, Repository, Token

__all__ = [
    "LASTING_FAULTS",
    "PASSING_FAULTS",
    "CheckRun",
    "Comment",
    "FakeGitHub",
    "Fault",
    "FaultKind",
    "Faults",
    "Pull",
    "Repository",
    "Request",
    "Token",
]
