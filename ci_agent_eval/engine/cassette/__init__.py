"""Recording and replay of what models and tools answer: one readable file per scenario.

Models are recorded by their traffic, whichever framework sends it (`CassetteSession.player`).
"""

from __future__ import annotations

from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.cassette.store import CassetteStore

__all__ = ["CassetteMissError", "CassetteMode", "CassetteSession", "CassetteStore"]
