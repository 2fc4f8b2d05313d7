"""Google's generateContent and streamGenerateContent, of Gemini and of Vertex AI.

Shapes: https://ai.google.dev/api/generate-content. The API takes keys in camel case and in snake
case, which LiteLLM sends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Attachment, TokenUsage, ToolCall
from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.canonical_key import KeyRules
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    build_tool_call,
    get_count,
    get_object,
    get_objects,
    get_text,
    join_texts,
    read_base64,
)
from ci_agent_eval.model_traffic.formats.message_format import Format
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)

_PATH = re.compile(r"/([^/:]+):(?:generateContent|streamGenerateContent)$")


def _get_model(path: str, _request: Json) -> str | None:
    found = _PATH.search(path)
    return found[1] if found else None


def _convert_keys(value: Json) -> Json:
    """Convert the keys of one object to camel case."""
    return {
        re.sub(r"_([a-z])", lambda match: match[1].upper(), key): item
        for key, item in value.items()
    }


def _get_config(request: Json) -> Json:
    return _convert_keys(get_object(_convert_keys(request), "generationConfig"))


def _get_schema(request: Json) -> object:
    config = _get_config(request)
    return config.get("responseJsonSchema") or config.get("responseSchema")


def _get_parts(content: Json) -> list[Json]:
    return [_convert_keys(part) for part in get_objects(content, "parts")]


def _read_messages(request: Json) -> Iterator[RequestMessage]:
    instruction = get_object(_convert_keys(request), "systemInstruction")
    system = _join_answer_texts(_get_parts(instruction))
    if system:
        yield RequestMessage("system", system)
    for content in get_objects(request, "contents"):
        yield from _read_content(content)


def _read_content(content: Json) -> Iterator[RequestMessage]:
    """Yield a message; the results of functions are a message of the tool."""
    parts = _get_parts(content)
    results = [get_object(part, "functionResponse") for part in parts if "functionResponse" in part]
    others = [part for part in parts if "functionResponse" not in part]
    if results:
        inner = [part for result in results for part in _get_parts(result)]
        yield RequestMessage(
            "tool",
            tool_results=tuple(_read_result(result) for result in results),
            attachments=tuple(_read_attachments(inner)),
        )
    if others or not results:
        yield RequestMessage(
            "assistant" if content.get("role") == "model" else "user",
            _join_answer_texts(others),
            _read_calls(others),
            attachments=tuple(_read_attachments(others)),
        )


def _join_answer_texts(parts: Sequence[Json]) -> str:
    """Join the texts without those of the model's thoughts."""
    return join_texts([part for part in parts if part.get("thought") is not True])


def _read_result(result: Json) -> ToolResult:
    """Read a result, which is an object; clients wrap other values in one."""
    response = get_object(result, "response")
    wrapper = next(iter(response)) if len(response) == 1 else None
    value = response.get(wrapper) if wrapper in _WRAPPERS else response
    return ToolResult(
        call_id=get_text(result, "id"),
        name=get_text(result, "name"),
        value=to_jsonable(value),
        is_error=wrapper == "error",
    )


# Google's description and clients; LiteLLM; PydanticAI
_WRAPPERS = ("error", "output", "result", "content", "return_value")


def _read_attachments(parts: Sequence[Json]) -> Iterator[Attachment]:
    for part in parts:
        inline = _convert_keys(get_object(part, "inlineData"))
        address = _convert_keys(get_object(part, "fileData"))
        if inline or address:
            media_type = inline.get("mimeType") or address.get("mimeType")
            yield read_base64(inline.get("data"), media_type)


def _read_calls(parts: Sequence[Json]) -> tuple[ToolCall, ...]:
    calls = []
    for at, part in enumerate(parts):
        call = get_object(part, "functionCall")
        if call:
            calls.append(build_tool_call(call.get("id"), call.get("name"), call.get("args")))
        elif "executableCode" in part:
            calls.append(_read_execution(get_object(part, "executableCode"), parts[at + 1 :]))
    return tuple(calls)


def _read_execution(code: Json, later: Sequence[Json]) -> ToolCall:
    """Read code that the provider ran, with its result, which is the next one."""
    results = (
        get_object(part, "codeExecutionResult") for part in later if "codeExecutionResult" in part
    )
    result = next(results, {})
    output, outcome = get_text(result, "output") or "", get_text(result, "outcome") or ""
    has_failed = outcome not in ("", "OUTCOME_OK")
    return build_tool_call(
        code.get("id"),
        "code_execution",
        {"language": code.get("language"), "code": code.get("code")},
        result=output if result and not has_failed else None,
        error=f"{outcome}: {output}" if has_failed else None,
    )


def _read_tools(request: Json) -> Iterator[ToolDefinition]:
    for tool in get_objects(request, "tools"):
        for name, value in _convert_keys(tool).items():
            if name == "functionDeclarations":
                yield from _read_declarations(get_objects({name: value}, name))
            else:
                yield ToolDefinition(name)


def _read_declarations(declarations: Sequence[Json]) -> Iterator[ToolDefinition]:
    for declaration in declarations:
        found = _convert_keys(declaration)
        schema = found.get("parametersJsonSchema") or found.get("parameters")
        description = get_text(found, "description") or ""
        name = get_text(found, "name") or ""
        yield ToolDefinition(name, to_jsonable(schema), description)


def _read_answer(body: Json) -> ModelAnswer:
    """Read an answer; of several candidates the first."""
    candidate = next(iter(get_objects(body, "candidates")), {})
    parts = _get_parts(get_object(candidate, "content"))
    usage = get_object(body, "usageMetadata")
    return ModelAnswer(
        id=get_text(body, "responseId"),
        model=get_text(body, "modelVersion"),
        text=_join_answer_texts(parts),
        tool_calls=(*_read_calls(parts), *_read_searches(candidate)),
        tokens=_read_tokens(usage),
        usage=usage or None,
        finish_reason=get_text(candidate, "finishReason")
        or get_text(get_object(body, "promptFeedback"), "blockReason"),
    )


def _read_searches(candidate: Json) -> Iterator[ToolCall]:
    """Yield the web search that an answer is grounded on."""
    metadata = get_object(candidate, "groundingMetadata")
    queries = metadata.get("webSearchQueries")
    if queries:
        chunks = get_objects(metadata, "groundingChunks")
        sources: list[JsonValue] = [get_text(get_object(chunk, "web"), "uri") for chunk in chunks]
        yield build_tool_call(
            None, "google_search", {"queries": queries}, result={"sources": sources}
        )


def _read_tokens(usage: Json) -> TokenUsage | None:
    """Read the usage, in which counts of zero are left out."""
    prompt = get_count(usage, "promptTokenCount")
    if prompt is None:
        return None
    thoughts = get_count(usage, "thoughtsTokenCount")
    return TokenUsage(
        input=prompt + (get_count(usage, "toolUsePromptTokenCount") or 0),
        output=(get_count(usage, "candidatesTokenCount") or 0) + (thoughts or 0),
        cached=get_count(usage, "cachedContentTokenCount") or 0,
        reasoning=thoughts,
    )


def _assemble_answer(events: Sequence[Json]) -> Json:
    """Merge the chunks of an answer, each of which has further parts."""
    body: Json = {}
    candidate: Json = {}
    parts: list[Json] = []
    for event in events:
        body |= {key: value for key, value in event.items() if value}
        found = next(iter(get_objects(event, "candidates")), {})
        candidate |= {key: value for key, value in found.items() if value}
        parts += get_objects(get_object(found, "content"), "parts")
    if not candidate.get("finishReason") and not get_object(body, "promptFeedback"):
        body.pop("usageMetadata", None)  # that of the part so far
    return {**body, "candidates": [{**candidate, "content": {"parts": parts}}]}


GEMINI = Format(
    name="gemini",
    path=_PATH,
    streamed_path=re.compile(r":streamGenerateContent$"),
    conversation="contents",
    get_model=_get_model,
    settings="temperature topP topK candidateCount frequencyPenalty maxOutputTokens"
    " presencePenalty responseMimeType seed stopSequences thinkingConfig",
    get_settings=_get_config,
    get_schema=_get_schema,
    read_messages=_read_messages,
    read_tools=_read_tools,
    reader=AnswerReader(
        assemble=_assemble_answer,
        read=_read_answer,
    ),
    key_rules=KeyRules(
        dropped="labels",
        ids="contents.*.parts.*.functionCall.id contents.*.parts.*.functionResponse.id"
        " contents.*.parts.*.function_call.id contents.*.parts.*.function_response.id"
        " contents.*.parts.*.executableCode.id contents.*.parts.*.codeExecutionResult.id",
        results=("contents.*.parts", "functionResponse.id"),
        blobs="contents.*.parts.*.thoughtSignature contents.*.parts.*.thought_signature",
    ),
    build_error=lambda message: {
        "error": {"code": 400, "message": message, "status": "FAILED_PRECONDITION"}
    },
)
