"""Simulated users: a persona talks to an agent until the conversation ends."""

from ci_agent_eval.authoring.simulation.judge import ConversationJudge, SimulationVerdict
from ci_agent_eval.authoring.simulation.message_files import MessageFile
from ci_agent_eval.authoring.simulation.result import SimulationResult, SimulationStop
from ci_agent_eval.authoring.simulation.run import Simulation, run_simulation
from ci_agent_eval.authoring.simulation.script_steps import (
    AgentStep,
    CheckStep,
    JudgeStep,
    MessageStep,
    ProceedStep,
    ToolResultStep,
    UserStep,
)
from ci_agent_eval.authoring.simulation.user import SimulatedUser
from ci_agent_eval.authoring.simulation.user_model import SimulatedUserError

__all__ = [
    "AgentStep",
    "CheckStep",
    "ConversationJudge",
    "JudgeStep",
    "MessageFile",
    "MessageStep",
    "ProceedStep",
    "SimulatedUser",
    "SimulatedUserError",
    "Simulation",
    "SimulationResult",
    "SimulationStop",
    "SimulationVerdict",
    "ToolResultStep",
    "UserStep",
    "run_simulation",
]
