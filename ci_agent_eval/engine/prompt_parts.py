"""Prompts with files: texts, images, audio and documents, for agents that PydanticAI runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    ModelRequest,
    UploadedFile,
    UserContent,
    UserPromptPart,
    VideoUrl,
)

from ci_agent_eval.contract.fields import field_error
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.trajectory import check_attached_bytes
from ci_agent_eval.engine.result import ImageContent
from ci_agent_eval.engine.turns import render_text

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
