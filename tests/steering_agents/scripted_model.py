"""A model on the loopback that asks a coding agent to run given shell commands, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.model_server import ModelServer, Step
from tests.model_server.script import call, text_of

Json = dict[str, Any]

FINAL_TEXT = "Done."
"""The model's answer after the last command."""
SHELL_TOOLS = (
    *("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command"),
)  # fmt: skip
"""The shell tools of the supported agents."""


class ScriptedModel(ModelServer):
    """`tool_results` are the texts that the model got for its commands so far, in order."""

    def __init__(self, turns: Sequence[Sequence[str]]) -> None:
        super().__init__([])
        self.tool_results: Sequence[str] = ()
        self._turns = turns
        self._held: Sequence[str] = ()
        """Results that the agent's history lacks: a proxy returned them in its place."""

    def app(self) -> Starlette:
        """Also refuse WebSockets, in the way in which Codex falls back to HTTP at once."""
        app = super().app()
        app.routes.append(Route("/{path:path}", _refuse_upgrade, methods=["GET"]))
        return app

    def choose_step(self, body: Json, messages: Sequence[Mapping[str, Any]]) -> Step:
        """Return the next commands as calls of the offered shell tool, or the final text."""
        if not messages:
            return Step(status=404)
        found = next((tool for tool in _list_tools(body) if tool[0] in SHELL_TOOLS), None)
        if found is None:  # a request beside the conversation, such as one for a title
            return Step(text=FINAL_TEXT)
        results = [text_of(one) for one in messages if one["role"] == "tool"]
        if results and self.tool_results and results[0] != self.tool_results[0]:
            self._held = self._held or self.tool_results
            results = [*self._held, *results]
        if len(results) >= len(self.tool_results):
            self.tool_results = results
        at = 0
        for commands in self._turns:
            if at == len(results):
                return Step(tool_calls=[_build_call(*found, command) for command in commands])
            at += len(commands)
        return Step(text=FINAL_TEXT)


async def _refuse_upgrade(request: Request) -> Response:
    return Response(status_code=426 if "upgrade" in request.headers else 404)


def _list_tools(body: Json) -> Iterator[tuple[str, Json]]:
    """Yield names and JSON schemas of a request's tools, whichever API it is of."""
    for tool in body.get("tools") or ():
        for each in tool.get("functionDeclarations", [tool.get("function", tool)]):
            schemas = ("input_schema", "parametersJsonSchema", "parameters")
            yield each.get("name", ""), next((each[key] for key in schemas if each.get(key)), {})


def _build_call(name: str, schema: Json, command: str) -> Json:
    argument = "cmd" if "cmd" in schema.get("properties", {}) else "command"
    others: Json = {key: "run tests" for key in schema.get("required", ()) if key != argument}
    if "is_background" in others:
        others["is_background"] = False
    return call(name, **others, **{argument: command})
