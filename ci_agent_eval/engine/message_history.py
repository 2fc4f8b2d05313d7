"""Messages of OpenAI's chat API as the message history of PydanticAI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserContent,
    UserPromptPart,
    VideoUrl,
)

from ci_agent_eval.contract.fields import field_error
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.trajectory import check_attached_bytes
from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.model import build_model
from ci_agent_eval.engine.model_calls import render_text
from ci_agent_eval.engine.result import ImageContent


def build_messages(entries: Iterable[Mapping[str, Any]]) -> list[ModelMessage]:
    """Return messages with roles, texts, tool calls and results as PydanticAI has them."""
    tools: dict[str, str] = {}
    found: list[ModelMessage] = []
    for entry in entries:
        role, text = entry["role"], entry["content"]
        if role == "assistant":
            parts: list[ModelResponsePart] = [TextPart(text)] if text else []
            parts += [_build_call(call, tools) for call in entry.get("tool_calls", ())]
            found.append(ModelResponse(parts=parts))
        elif role == "tool":
            call_id = entry["tool_call_id"]
            part = ToolReturnPart(tools[call_id], text, tool_call_id=call_id)
            found.append(ModelRequest(parts=[part]))
        else:
            kind = UserPromptPart if role == "user" else SystemPromptPart
            found.append(ModelRequest(parts=[kind(text)]))
    return found


async def read_system_prompt(agent: object) -> list[ModelMessage]:
    """Return the system prompt of a PydanticAI agent, or of its adapter, as a first message.

    PydanticAI adds it to conversations without a history only. Instructions are no part of it.
    """
    loop = agent if isinstance(agent, AbstractAgent) else getattr(agent, "agent", None)
    if not isinstance(loop, AbstractAgent) or loop.model is None:
        return []
    # A model given by name needs no key for this: a replay has none.
    model = (
        build_model(Provider(loop.model), {}, offline=True) if isinstance(loop.model, str) else None
    )
    parts = await loop.system_prompt_parts(deps=getattr(agent, "deps", None), model=model)
    return [ModelRequest(parts=parts)] if parts else []


def build_prompt(text: str, files: Iterable[tuple[bytes, str]]) -> list[UserContent]:
    """Return a prompt with files, each as its bytes and media type."""
    return [text, *(BinaryContent(data, media_type=kind) for data, kind in files)]


def _build_call(call: Mapping[str, Any], tools: dict[str, str]) -> ToolCallPart:
    function = call["function"]
    tools[call["id"]] = function["name"]
    return ToolCallPart(
        function["name"], json.loads(function["arguments"]), tool_call_id=call["id"]
    )


_FILE_TYPES = (AudioUrl, BinaryContent, DocumentUrl, ImageUrl, UploadedFile, VideoUrl)
"""PydanticAI's types of files: their content, or their address."""


def parse_prompt_parts(
    prompt: Sequence[object], history: Iterable[object] = ()
) -> tuple[UserContent, ...]:
    """Return the parts of a prompt as PydanticAI takes them. Raises InputError.

    The files of the prompt and of the user's messages in `history` have a common limit.
    """
    if not prompt:
        raise field_error("aitest_run", "prompt", "must have at least one part")
    parts = tuple(map(_parse_part, prompt))
    earlier = (part for message in history for part in _list_user_parts(message))
    try:
        check_attached_bytes(sum(map(_count_bytes, (*parts, *earlier))))
    except ValueError as error:
        raise field_error("aitest_run", "prompt", str(error)) from None
    return parts


def _count_bytes(part: object) -> int:
    """Return the bytes of a file that a request contains, also as an address `data:`."""
    if isinstance(part, BinaryContent):
        return len(part.data)
    url = part.url if isinstance(part, FileUrl) else ""
    return len(url) * 3 // 4 if url.startswith("data:") else 0


def _list_user_parts(message: object) -> Iterator[object]:
    for part in message.parts if isinstance(message, ModelRequest) else ():
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            yield from part.content


def render_parts(parts: Sequence[UserContent]) -> str:
    """Return the text of a prompt, with a note in place of each file, as its turn has it."""
    return render_text(list(parts))


def _parse_part(part: Any) -> UserContent:
    if isinstance(part, str):
        return clean_text(part)
    if isinstance(part, ImageContent):
        return BinaryContent(part.data, media_type=part.media_type)
    if isinstance(part, _FILE_TYPES):
        return part
    raise field_error(
        "aitest_run",
        "prompt",
        "must be a text, or a list of texts and files (ImageContent, or PydanticAI's "
        f"BinaryContent and ImageUrl), got a part of type {type(part).__name__}",
    )
