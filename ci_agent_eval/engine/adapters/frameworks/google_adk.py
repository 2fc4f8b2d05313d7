"""Agents, apps and runners of Google ADK."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)
from ci_agent_eval.engine.infrastructure_errors import ModelError

_USER = "user"


class ADKAgent(FrameworkAgent):
    """An agent, `App` or `Runner`; each conversation is a session of the runner."""

    @property
    def label(self) -> str:
        """The name of the adapter, or of the agent or app."""
        named = self.agent.agent if _is_runner(self.agent) else self.agent
        return self.name or str(named.name)

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent in the conversation's session; the last final event is the answer."""
        runner, session = conversation.state or await self._begin_session()
        types = import_module("google.genai.types")
        message = types.Content(role=_USER, parts=[types.Part(text=prompt)])
        final = None
        async for event in runner.run_async(
            user_id=session.user_id, session_id=session.id, new_message=message
        ):
            final = event if event.error_code or event.is_final_response() else final
        if final is not None and final.error_code:
            raise ModelError(f"{final.error_code}: {final.error_message}")
        text = _get_text(final)
        schema = getattr(runner.agent, "output_schema", None)
        return FrameworkAnswer(
            text if schema is None else json.loads(text), state=(runner, session)
        )

    async def _begin_session(self) -> tuple[Any, Any]:
        runner = self._build_runner()
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id=_USER
        )
        return runner, session

    def _build_runner(self) -> Any:
        if _is_runner(self.agent):
            return self.agent
        build = import_module("google.adk.runners").InMemoryRunner
        is_app = hasattr(self.agent, "plugins")
        return build(app=self.agent) if is_app else build(agent=self.agent)


def _is_runner(agent: Any) -> bool:
    return hasattr(agent, "session_service")


def _get_text(event: Any) -> str:
    parts = event.content.parts if event is not None and event.content else None
    return "".join(part.text or "" for part in parts or () if not part.thought)
