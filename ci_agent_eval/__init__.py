"""Agent tests as a required status check.

Exports the names that test files import, for their code and their type annotations
(docs/public-api.md). Each name's module is imported on first use, so that pytest starts fast.
"""

from __future__ import annotations

from ci_agent_eval.errors import create_lazy_getattr

# Importing `typing` would take half as long as starting Python, which a coding agent waits for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ci_agent_eval.authoring.agent_runner import AgentRunner
    from ci_agent_eval.authoring.check_function import check
    from ci_agent_eval.authoring.conversations import (
        AgentUnderTest,
        AsyncAgentUnderTest,
        conversation,
    )
    from ci_agent_eval.authoring.eval_results import EvalResults
    from ci_agent_eval.authoring.scenarios import scenarios
    from ci_agent_eval.authoring.scenarios.scenario import Scenario
    from ci_agent_eval.authoring.simulation import (
        AgentStep,
        CheckStep,
        ConversationJudge,
        JudgeStep,
        MessageFile,
        MessageStep,
        ProceedStep,
        SimulatedUser,
        Simulation,
        SimulationResult,
        ToolResultStep,
        UserStep,
        run_simulation,
    )
    from ci_agent_eval.authoring.text_judges import LLMAssert, LLMScore, ScoreResult, assert_score
    from ci_agent_eval.contract.episode import Episode
    from ci_agent_eval.contract.evaluation import EvaluationReport
    from ci_agent_eval.engine.declarations import Agent, CLIServer, MCPServer, Provider
    from ci_agent_eval.engine.result import AgentResult
    from ci_agent_eval.engine.run import aitest_run
    from ci_agent_eval.engine.skills import Skill
    from ci_agent_eval.opik.decorators import llm_episode, llm_unit
    from ci_agent_eval.recording import EpisodeRecorder, Reply

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentResult",
    "AgentRunner",
    "AgentStep",
    "AgentUnderTest",
    "AsyncAgentUnderTest",
    "CLIServer",
    "CheckStep",
    "ConversationJudge",
    "Episode",
    "EpisodeRecorder",
    "EvalResults",
    "EvaluationReport",
    "JudgeStep",
    "LLMAssert",
    "LLMScore",
    "MCPServer",
    "MessageFile",
    "MessageStep",
    "ProceedStep",
    "Provider",
    "Reply",
    "Scenario",
    "ScoreResult",
    "SimulatedUser",
    "Simulation",
    "SimulationResult",
    "Skill",
    "ToolResultStep",
    "UserStep",
    "aitest_run",
    "assert_score",
    "check",
    "conversation",
    "llm_episode",
    "llm_unit",
    "run_simulation",
    "scenarios",
]

_HOMES = {
    "Agent": "engine.declarations",
    "AgentResult": "engine.result",
    "AgentRunner": "authoring.agent_runner",
    "AgentStep": "authoring.simulation",
    "AgentUnderTest": "authoring.conversations",
    "AsyncAgentUnderTest": "authoring.conversations",
    "CLIServer": "engine.declarations",
    "CheckStep": "authoring.simulation",
    "ConversationJudge": "authoring.simulation",
    "Episode": "contract.episode",
    "EpisodeRecorder": "recording",
    "EvalResults": "authoring.eval_results",
    "EvaluationReport": "contract.evaluation",
    "JudgeStep": "authoring.simulation",
    "LLMAssert": "authoring.text_judges",
    "LLMScore": "authoring.text_judges",
    "MCPServer": "engine.declarations",
    "MessageFile": "authoring.simulation",
    "MessageStep": "authoring.simulation",
    "ProceedStep": "authoring.simulation",
    "Provider": "engine.declarations",
    "Reply": "recording.turn",
    "Scenario": "authoring.scenarios.scenario",
    "ScoreResult": "authoring.text_judges",
    "SimulatedUser": "authoring.simulation",
    "Simulation": "authoring.simulation",
    "SimulationResult": "authoring.simulation",
    "Skill": "engine.skills",
    "ToolResultStep": "authoring.simulation",
    "UserStep": "authoring.simulation",
    "aitest_run": "engine.run",
    "assert_score": "authoring.text_judges",
    "check": "authoring.check_function",
    "conversation": "authoring.conversations",
    "llm_episode": "opik.decorators",
    "llm_unit": "opik.decorators",
    "run_simulation": "authoring.simulation",
    "scenarios": "authoring.scenarios",
}

_EXTRAS = dict.fromkeys(
    ("Agent", "AgentResult", "CLIServer", "MCPServer", "Provider", "Reply", "Skill", "aitest_run"),
    "traffic",
)
"""The names that need libraries of an extra."""

__getattr__ = create_lazy_getattr(__name__, _HOMES, extras=_EXTRAS)
