"""Record and replay of models' answers: one readable file a scenario, at the model's level.

It works for any PydanticAI agent: give it a `CassetteModel`, or override its model by one.
"""

from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.cassette.store import CassetteStore

__all__ = ["CassetteMissError", "CassetteMode", "CassetteModel", "CassetteSession", "CassetteStore"]
