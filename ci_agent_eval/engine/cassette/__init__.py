"""Recording and replay of model responses: one readable file per scenario.

Works for any PydanticAI agent: give it a `CassetteModel`, or override its model with one.
"""

from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.cassette.store import CassetteStore

__all__ = ["CassetteMissError", "CassetteMode", "CassetteModel", "CassetteSession", "CassetteStore"]
