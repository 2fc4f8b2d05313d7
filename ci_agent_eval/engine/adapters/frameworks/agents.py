"""Agents of nine frameworks: how each runs, and how it keeps its conversation."""

from __future__ import annotations

import copy
import json
import re
from functools import partial
from importlib import import_module
from typing import Any
from uuid import uuid4

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    ExclusiveAgents,
    FrameworkAgent,
    FrameworkAnswer,
)
from ci_agent_eval.engine.adapters.function import call_in_thread
from ci_agent_eval.engine.infrastructure_errors import ModelError
from ci_agent_eval.errors import InputError


class AgnoAgent(FrameworkAgent):
    """An agent or team of agno; with a database it keeps the conversation by a session id."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent on the message, after the earlier ones if it does not keep them."""
        session = conversation.state or uuid4().hex
        given: Any = prompt
        if self.agent.db is None and conversation:
            given = [*conversation, {"role": "user", "content": prompt}]
        result = await self.agent.arun(given, session_id=session)
        if getattr(result.status, "value", result.status) == "ERROR":
            raise ModelError(f"{self.label} failed: {result.content}")
        messages = [message for message in result.messages or () if message.role != "system"]
        return FrameworkAnswer(result.content, state=session, messages=messages)


_AGENTS = ExclusiveAgents()


class ChatAgent(FrameworkAgent):
    """A chat agent or team of AutoGen.

    It keeps the conversation itself and runs one at a time: a run restores the state of its
    conversation, and waits for the run of another one.
    """

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent from the conversation's saved state."""
        agent = self.agent
        async with _AGENTS.lock(agent):
            initial = await _AGENTS.get_initial_state(agent, agent.save_state)
            await agent.load_state(copy.deepcopy(conversation.state or initial))
            result = await agent.run(task=prompt)
            last = result.messages[-1]
            content = last.content if hasattr(last.content, "model_dump") else last.to_text()
            return FrameworkAnswer(content, state=await agent.save_state())


_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


class CrewAgent(FrameworkAgent):
    """A crew, whose tasks have one placeholder for the message, or a single agent.

    Both keep the state of a run, so each run has a copy.
    """

    @property
    def label(self) -> str:
        """The name of the adapter or of the crew, or the agent's role."""
        own = getattr(self.agent, "role", None) or getattr(self.agent, "name", None)
        return self.name or str(own or type(self.agent).__name__)

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Kick a copy off: a crew with the message as its input, an agent with all messages."""
        is_crew = hasattr(self.agent, "tasks")
        if is_crew and conversation:
            raise InputError(
                f"crew {self.label!r} keeps no conversation; use its agent for several messages"
            )
        messages = [*conversation, {"role": "user", "content": prompt}]
        given: dict[str, Any] = {"messages": messages}
        if is_crew:
            given = {"inputs": {self._find_placeholder(): prompt}}
        result = await self.agent.copy().kickoff_async(**given)
        answer = [{"role": "assistant", "content": result.raw}]
        return FrameworkAnswer(
            result.pydantic or result.raw, state=True, messages=[*messages, *answer]
        )

    def _find_placeholder(self) -> str:
        texts = [text for task in self.agent.tasks for text in _list_texts(task)]
        texts += [text for agent in self.agent.agents for text in _list_texts(agent)]
        names: list[str] = sorted({name for text in texts for name in _PLACEHOLDER.findall(text)})
        if len(names) != 1:
            found = ", ".join(names) or "none"
            raise InputError(
                f"crew {self.label!r}: the message needs exactly one placeholder in its tasks, "
                f"there are: {found}; give a function that calls `kickoff` with its inputs"
            )
        return names[0]


def _list_texts(part: Any) -> list[str]:
    fields = ("description", "expected_output", "role", "goal", "backstory")
    return [str(getattr(part, field, None) or "") for field in fields]


_USER = "user"


class ADKAgent(FrameworkAgent):
    """An agent, `App` or `Runner` of Google ADK; each conversation is a session of the runner."""

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
        text = _get_event_text(final)
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


def _get_event_text(event: Any) -> str:
    parts = event.content.parts if event is not None and event.content else None
    return "".join(part.text or "" for part in parts or () if not part.thought)


class GraphAgent(FrameworkAgent):
    """A compiled graph of LangGraph; with a checkpointer it keeps messages by a thread id."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the graph on the new message, with the earlier ones if it does not keep them."""
        if "messages" not in self.agent.channels:
            raise InputError(
                f"graph {self.label!r} has no `messages` in its state; give a function that calls "
                "it and returns its answer"
            )
        thread = conversation.state or uuid4().hex
        is_kept = bool(self.agent.checkpointer)
        known = () if is_kept else conversation
        state = await self.agent.ainvoke(
            {"messages": [*known, {"role": "user", "content": prompt}]},
            {"configurable": {"thread_id": thread}},
        )
        messages = state["messages"]
        output = state.get("structured_response")
        return FrameworkAnswer(
            _get_text(messages[-1]) if output is None else output, state=thread, messages=messages
        )


def _get_text(message: Any) -> str:
    """Return the text of a message; its `text` was a method in older versions of LangChain."""
    text = message.text
    return str(text() if callable(text) and not isinstance(text, str) else text)


_KEPT_VALUES = ("state", "current_agent_name")
"""Values of a finished run's context that the next run continues with, besides the memory."""


class WorkflowAgent(FrameworkAgent):
    """An agent or `AgentWorkflow` of LlamaIndex."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent in a new context, with the memory and values of the conversation."""
        context = import_module("llama_index.core.workflow").Context(self.agent)
        known: dict[str, Any] = dict(conversation.state or {})
        memory = known.pop("memory", None)
        for name, value in known.items():
            await context.store.set(name, value)
        run = self.agent.run(user_msg=prompt, memory=memory, ctx=context)
        result = await run
        typed = getattr(result, "structured_response", None)
        state = {"memory": await run.ctx.store.get("memory")}
        for name in _KEPT_VALUES:
            if (value := await run.ctx.store.get(name, default=None)) is not None:
                state[name] = value
        return FrameworkAnswer(str(result) if typed is None else typed, state=state)


class OpenAIAgent(FrameworkAgent):
    """An `agents.Agent`; after a handoff the next message goes to the agent that took over."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the current agent with `Runner.run`."""
        current = conversation.state or self.agent
        items = [*conversation, {"role": "user", "content": prompt}]
        result = await import_module("agents").Runner.run(current, items)
        return FrameworkAnswer(
            result.final_output, state=result.last_agent, messages=result.to_input_list()
        )


class StepAgent(FrameworkAgent):
    """A `ToolCallingAgent` or `CodeAgent` of smolagents.

    It keeps the conversation itself, so each conversation has a copy with a separate memory.
    """

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the conversation's copy in a thread."""
        agent = conversation.state or _copy_agent(self.agent)

        def run() -> Any:
            return agent.run(prompt, reset=False, return_full_result=True)

        result = await call_in_thread(run)
        is_cut_off = result.state == "max_steps_error"
        return FrameworkAnswer(
            result.output,
            state=agent,
            stop_reason="max_turns" if is_cut_off else "completed",
            error=f"it was not done after {agent.max_steps} steps" if is_cut_off else None,
        )


def _copy_agent(agent: Any) -> Any:
    """Copy an agent without its conversation; it shares model and tools with the original."""
    clone = copy.copy(agent)
    clone.memory = type(agent.memory)(agent.system_prompt)
    clone.state = dict(agent.state)
    clone.monitor = type(agent.monitor)(agent.model, agent.logger)
    clone._setup_step_callbacks(None)  # noqa: SLF001 - it registers the monitor of the copy
    for kind, callbacks in agent.step_callbacks._callbacks.items():  # noqa: SLF001 - as above
        for callback in callbacks:
            if getattr(callback, "__self__", None) is not agent.monitor:
                clone.step_callbacks.register(kind, callback)
    clone.managed_agents = {
        name: _copy_agent(managed) for name, managed in agent.managed_agents.items()
    }
    if hasattr(agent, "create_python_executor"):
        clone.python_executor = clone.create_python_executor()
    return clone


class StrandsAgent(FrameworkAgent):
    """A `strands.Agent`.

    It keeps the conversation itself and runs one at a time: a run restores the state of its
    conversation, and waits for the run of another one.
    """

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent from the conversation's snapshot."""
        agent = self.agent
        save = partial(agent.take_snapshot, preset="session")
        async with _AGENTS.lock(agent):
            initial = await _AGENTS.get_initial_state(agent, save)
            agent.load_snapshot(conversation.state or initial)
            result = await agent.invoke_async(prompt)
            output = result.structured_output
            return FrameworkAnswer(
                str(result).strip() if output is None else output,
                state=save(),
                messages=tuple(agent.messages),
            )
