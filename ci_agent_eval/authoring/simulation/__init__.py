"""Simulated users: a persona talks to an agent until the conversation ends."""

from ci_agent_eval.authoring.simulation.conversation import SimulationStop
from ci_agent_eval.authoring.simulation.result import SimulationResult, UserUsage
from ci_agent_eval.authoring.simulation.run import Simulation, run_simulation
from ci_agent_eval.authoring.simulation.user import SimulatedUser
from ci_agent_eval.authoring.simulation.user_model import SimulatedUserError

__all__ = [
    "SimulatedUser",
    "SimulatedUserError",
    "Simulation",
    "SimulationResult",
    "SimulationStop",
    "UserUsage",
    "run_simulation",
]
