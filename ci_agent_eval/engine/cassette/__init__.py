"""Record and replay of models' answers: one readable file a scenario, at the model's level.

It works for any PydanticAI agent: give it a `CassetteModel`, or override its model by one.
"""

from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.cassette.shelf import CassetteShelf
from ci_agent_eval.engine.cassette.tape import CassetteMode, Tape

__all__ = ["CassetteMissError", "CassetteMode", "CassetteModel", "CassetteShelf", "Tape"]
