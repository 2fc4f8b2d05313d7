"""A scripted model: a deterministic function of everything that a request contains."""

import enum
import hashlib
import inspect
import json
import re
import typing

from shopdesk import settings


def describe_tool(tool):
    """Return the schema of a function, as a model would see it."""
    hints = typing.get_type_hints(tool)
    parameters = inspect.signature(tool).parameters.values()
    return {
        "name": tool.__name__,
        "description": inspect.getdoc(tool) or "",
        "parameters": {
            parameter.name: {
                "type": _describe_type(hints.get(parameter.name, str)),
                "default": None if parameter.default is parameter.empty else str(parameter.default),
            }
            for parameter in parameters
        },
        "returns": _describe_type(hints.get("return", str)),
    }


def _describe_type(hint):
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return [member.value for member in hint]
    if isinstance(hint, type) and typing.is_typeddict(hint):
        return {name: _describe_type(part) for name, part in hint.__annotations__.items()}
    return getattr(hint, "__name__", str(hint))


def choose_tool(schemas, message):
    words = set(re.findall(r"[a-z]+", message.lower()))
    scores = [
        len(words & set(re.findall(r"[a-z]+", f"{schema['name']} {schema['description']}".lower())))
        for schema in schemas
    ]
    best = max(scores, default=0)
    return scores.index(best) if best else None


def choose_arguments(tool, message):
    hints = typing.get_type_hints(tool)
    return {
        parameter.name: _choose_value(hints.get(parameter.name, str), message)
        for parameter in inspect.signature(tool).parameters.values()
        if parameter.default is parameter.empty
    }


def _choose_value(hint, message):
    if hint is int:
        return int((re.findall(r"\d+", message) or ["0"])[0])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return next((member.value for member in hint if member.value in message), "none")
    return message.split()[-1].strip(".?!")


def answer_message(instructions, tools, message):
    """Return the reply of the model, with its tool calls."""
    schemas = [describe_tool(tool) for tool in tools]
    request = json.dumps([instructions, schemas, message], sort_keys=True)
    digest = hashlib.sha256(request.encode()).hexdigest()[:10]
    chosen = choose_tool(schemas, message)
    calls = []
    headline = instructions.strip().split("\n")[0]
    outcome = "no tool fits"
    if chosen is not None:
        arguments = choose_arguments(tools[chosen], message)
        outcome = tools[chosen](**arguments)
        calls = [{"name": schemas[chosen]["name"], "arguments": arguments, "result": outcome}]
    text = f"{headline} {outcome} ({settings.describe_shop()}) #{digest}"
    return {"text": text, "tool_calls": calls, "source": "scripted"}
