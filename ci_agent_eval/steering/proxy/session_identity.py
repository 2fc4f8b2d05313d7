"""Identification of a request's session, by explicit ids or by the conversation's beginning.

Each request repeats the conversation and appends to it, so its beginning identifies it. This
module returns only hashes; texts and credentials are not stored.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_text,
    parse_object,
    render_compact_json,
)

SESSION_HEADER = "x-session-id"

# Claude Code's `metadata.user_id` ends like this, or is JSON with the key `session_id`.
_SESSION_SUFFIX = re.compile(r"session_([0-9a-fA-F-]{8,64})$")
_CREDENTIALS = ("authorization", "x-api-key", "api-key")
_INSTRUCTION_ROLES = ("system", "developer")


def identify_session(
    headers: Mapping[str, str],
    body: Json,
    header: str,
    previous_session: str | None = None,
) -> str | None:
    """Return the session of a request; None if unknown.

    The order: the header; the previous response, with its session if that is known; the
    provider's conversation; the session in `metadata.user_id`; the beginning of the conversation.
    """
    header_value = headers.get(header.lower(), "").strip()
    if header_value:
        return _hash_parts("header", header_value)
    previous_id = get_text(body, "previous_response_id")
    if previous_session or previous_id:
        return previous_session or _hash_parts("response", str(previous_id))
    session_name = _get_named_session(body)
    if session_name:
        return _hash_parts("named", session_name)
    opening = list(_iterate_opening(body))
    return _hash_parts("opening", *_iterate_context(headers, body), *opening) if opening else None


def _hash_parts(*parts: str) -> str:
    return hashlib.sha256(render_compact_json(parts)).hexdigest()[:32]


def _get_named_session(body: Json) -> str | None:
    conversation = get_text(body, "conversation") or get_text(
        get_object(body, "conversation"), "id"
    )
    user = _get_user_id(body)
    suffix = _SESSION_SUFFIX.search(user)
    session_id = get_text(parse_object(user) or {}, "session_id")
    return conversation or session_id or (suffix[1] if suffix else None)


def _get_user_id(body: Json) -> str:
    return get_text(get_object(body, "metadata"), "user_id") or ""


def _iterate_context(headers: Mapping[str, str], body: Json) -> Iterator[str]:
    """Yield values that distinguish conversations with the same beginning."""
    for name in _CREDENTIALS:
        yield headers.get(name, "")
    for key in ("model", "prompt_cache_key", "safety_identifier", "user"):
        yield get_text(body, key) or ""
    yield _get_user_id(body)


def _iterate_opening(body: Json) -> Iterator[str]:
    """Yield the instructions and the first message of the user."""
    for key in ("system", "instructions"):
        if body.get(key):
            yield f"{key}: {_render_content(body[key])}"
    items = body.get("messages", body.get("input"))
    if isinstance(items, str):
        yield f"user: {items}"
    messages = [m for m in items if isinstance(m, dict)] if isinstance(items, list) else []
    instructions = itertools.takewhile(lambda m: m.get("role") in _INSTRUCTION_ROLES, messages)
    users = (m for m in messages if m.get("role") == "user")
    for message in itertools.chain(instructions, itertools.islice(users, 1)):
        yield f"{message['role']}: {_render_content(message.get('content'))}"


def _render_content(content: object) -> str:
    """Return a content's text without cache marks, which move between messages."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(_render_content, content))
    part = content if isinstance(content, dict) else {"": content}
    unmarked = {key: value for key, value in part.items() if key != "cache_control"}
    return get_text(part, "text") or render_compact_json(unmarked).decode()
