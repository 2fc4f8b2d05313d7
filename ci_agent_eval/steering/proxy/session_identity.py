"""Which session a request belongs to: by what the client says, else by how its talk begins.

A conversation is sent anew with every request and grows at its end, so its beginning names it.
Only hashes leave this module: texts and credentials are not kept.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping

from ci_agent_eval.steering.proxy.sse import Json, parse_object, render_compact_json

SESSION_HEADER = "x-session-id"

# Claude Code's `metadata.user_id` ends like this, or is JSON that holds `session_id`.
_SESSION_SUFFIX = re.compile(r"session_([0-9a-fA-F-]{8,64})$")
_CREDENTIALS = ("authorization", "x-api-key", "api-key")
_INSTRUCTION_ROLES = ("system", "developer")


def identify_session(
    headers: Mapping[str, str], body: Json, *, header: str, chained: Callable[[str], str | None]
) -> str | None:
    """Return the session of a request; None where nothing tells.

    `chained` knows the sessions of responses by their ids, for requests that name the one before.
    The order: the header; the response before; the conversation at the provider; the session
    in `metadata.user_id`; the beginning of the conversation.
    """
    said = headers.get(header.lower(), "").strip()
    if said:
        return _hash_parts("header", said)
    before = body.get("previous_response_id")
    if isinstance(before, str) and before:
        return chained(before) or _hash_parts("response", before)
    named = _get_conversation_id(body) or _get_named_session(body)
    if named:
        return _hash_parts("named", named)
    opening = list(_iterate_opening(body))
    return _hash_parts("opening", *_iterate_context(headers, body), *opening) if opening else None


def _hash_parts(*parts: str) -> str:
    return hashlib.sha256(render_compact_json(parts)).hexdigest()[:32]


def _get_conversation_id(body: Json) -> str | None:
    value = body.get("conversation")
    value = value.get("id") if isinstance(value, dict) else value
    return value if isinstance(value, str) and value else None


def _get_named_session(body: Json) -> str | None:
    user = _get_user_id(body)
    data = parse_object(user) or {}
    inside = data.get("session_id")
    if isinstance(inside, str) and inside:
        return inside
    found = _SESSION_SUFFIX.search(user)
    return found.group(1) if found else None


def _get_user_id(body: Json) -> str:
    metadata = body.get("metadata")
    value = metadata.get("user_id") if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def _iterate_context(headers: Mapping[str, str], body: Json) -> Iterator[str]:
    """Return what tells apart two conversations that begin with the same words."""
    for name in _CREDENTIALS:
        yield headers.get(name, "")
    for key in ("model", "prompt_cache_key", "safety_identifier", "user"):
        value = body.get(key)
        yield value if isinstance(value, str) else ""
    yield _get_user_id(body)


def _iterate_opening(body: Json) -> Iterator[str]:
    """Return the instructions, and the messages up to the first of the user's."""
    for key in ("system", "instructions"):
        if body.get(key):
            yield f"{key}: {_render_content(body[key])}"
    entered = body.get("messages", body.get("input"))
    if isinstance(entered, str):
        yield f"user: {entered}"
    messages = [m for m in entered if isinstance(m, dict)] if isinstance(entered, list) else []
    instructions = itertools.takewhile(lambda m: m.get("role") in _INSTRUCTION_ROLES, messages)
    users = (m for m in messages if m.get("role") == "user")
    for message in itertools.chain(instructions, itertools.islice(users, 1)):
        yield f"{message['role']}: {_render_content(message.get('content'))}"


def _render_content(content: object) -> str:
    """Return a content's text; marks for caches wander from message to message and do not count."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(map(_render_part, parts))


def _render_part(part: object) -> str:
    if not isinstance(part, dict):
        return render_compact_json(part).decode()
    text = part.get("text")
    if isinstance(text, str):
        return text
    return render_compact_json({k: v for k, v in part.items() if k != "cache_control"}).decode()
