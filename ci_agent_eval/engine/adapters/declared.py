"""The adapter for declared agents: PydanticAI runs the loop with their model and servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.engine.adapters.loop import answer_by_loop, run_loop
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.cassette.players import ToolPlayer
from ci_agent_eval.engine.declarations import Agent, SkillText
from ci_agent_eval.engine.result import SkillInfo
from ci_agent_eval.engine.run_record import OfferedTools, RunRecord, restrict_toolsets
from ci_agent_eval.engine.session import EngineSession, Toolset


@dataclass(frozen=True)
class DeclaredAgent:
    """A declared agent in an episode of a session."""

    agent: Agent
    session: EngineSession
    episode_id: str

    @property
    def label(self) -> str:
        """The agent's name."""
        return self.agent.label

    @property
    def model(self) -> str | None:
        """The agent's model, as `provider:name`."""
        return self.agent.provider.model_id

    async def answer(self, work: AgentTask) -> None:
        """Run the agent and record every message in a turn."""
        offers = OfferedTools(self.agent)
        record = RunRecord(
            clock=work.clock,
            has_own_code=False,
            tool_player=ToolPlayer.find(work.cassette_session),
            traffic=work.traffic,
            faults=work.faults,
        )
        try:
            await answer_by_loop(self._run(work, record, offers), self.label, work, record)
        finally:
            work.declared = {
                "effective_system_prompt": self.agent.instructions or "",
                "skill_info": _describe_skill(self.agent.skill),
                "tools_by_server": offers.group_by_server(),
            }

    async def _run(self, work: AgentTask, record: RunRecord, offers: OfferedTools) -> None:
        """Run the agent; the time in which its servers start and end is not the agent's."""
        agent, set_waiting = self.agent, work.deadline.set_waiting
        set_waiting(True)
        async with self.session.toolsets(agent, self.episode_id) as toolsets:
            set_waiting(False)
            try:
                await run_loop(
                    self.session.build_loop(agent),
                    work,
                    record,
                    model=await self.session.build_run_model(agent, work.deadline.exclude_wait),
                    toolsets=restrict_toolsets(offers, toolsets, _build_skill_toolsets(agent)),
                    declaration=agent,
                )
            finally:
                set_waiting(True)


def _describe_skill(skill: SkillText | None) -> SkillInfo | None:
    if skill is None:
        return None
    return SkillInfo(
        name=skill.name,
        description=getattr(skill, "description", ""),
        instruction_content=skill.content,
        reference_names=tuple(getattr(skill, "files", ())),
    )


def _build_skill_toolsets(agent: Agent) -> Sequence[Toolset]:
    """Build the tool that reads a skill's files, which is always allowed."""
    if agent.skill is None:
        return ()
    from ci_agent_eval.engine.skill_files import build_skill_toolset  # noqa: PLC0415 - most have none
    from ci_agent_eval.engine.skills import Skill  # noqa: PLC0415 - as above

    toolset = build_skill_toolset(agent.skill) if isinstance(agent.skill, Skill) else None
    return () if toolset is None else (toolset,)
