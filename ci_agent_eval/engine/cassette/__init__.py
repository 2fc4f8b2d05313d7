"""Recording and replay of what models answer: one readable file per scenario.

`CassetteModel` records any PydanticAI agent: give it one, or override its model with one. The
player of a session (`CassetteSession.player`) records the model traffic of any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.cassette.store import CassetteStore
from ci_agent_eval.errors import create_lazy_getattr

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette.model import CassetteModel

__all__ = ["CassetteMissError", "CassetteMode", "CassetteModel", "CassetteSession", "CassetteStore"]

__getattr__ = create_lazy_getattr(
    __name__, {"CassetteModel": "engine.cassette.model"}, extra="engine"
)
