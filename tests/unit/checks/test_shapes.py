from __future__ import annotations

import http.server
import threading
from dataclasses import dataclass
from datetime import date

import pytest
from pydantic import BaseModel

from ci_agent_eval.checks import ArgumentShape, ReplyShape
from ci_agent_eval.errors import InputError
from tests.builders import calling, talk, tool_call, turn
from tests.tables import each_row

ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "required": ["id"],
    "$defs": {"line": {"type": "object", "required": ["sku"]}},
}


class Line(BaseModel):
    sku: str


class Order(BaseModel):
    id: int
    due: date | None = None
    lines: list[Line] = []


@dataclass
class Small:
    id: int


def replying(*replies):
    turns = [part for reply in replies for part in ("go on", turn(reply))]
    return talk(*turns)


def of(check, episode):
    (found,) = check.assertions(episode)
    return found.passed, found.score, found.reason


@each_row(
    ("shape", "reply", "said"),
    [
        (ORDER, '{"id": 1}', (True, 1, "it conforms")),
        (ORDER, '{"id": "1"}', (False, 0, "reply 1: $.id: '1' is not of type 'integer'")),
        (
            ORDER,
            '{"id": 1, "lines": [{"sku": "a"}, {}]}',
            (False, 0, "reply 1: $.lines[1]: 'sku' is a required property"),
        ),
        (ORDER, "[]", (False, 0, "reply 1: $: [] is not of type 'object'")),
        (True, "null", (True, 1, "it conforms")),
        (Order, '{"id": 1, "due": "2026-01-31"}', (True, 1, "it conforms")),
        (
            Order,
            '{"id": "x", "lines": [{"sku": 3}]}',
            (
                False,
                0,
                (
                    "reply 1: $.id: Input should be a valid integer, unable to parse string as an "
                    "integer, $.lines[0].sku: Input should be a valid string"
                ),
            ),
        ),
        (Small, "{}", (False, 0, "reply 1: $.id: is required")),
        (list[int], "[1, 2]", (True, 1, "it conforms")),
    ],
)
def test_replies(shape, reply, said):
    assert of(ReplyShape(shape), replying(reply)) == said


@each_row(
    ("reply", "why"),
    [
        ("Sure, here it is: {}", "no JSON (Expecting value"),
        ("{'id': 1}", "no JSON (Expecting property name"),
        ("", "no JSON (Expecting value: line 1 column 1 (char 0)): it is empty"),
        ('{"id": NaN}', "no JSON (NaN is not JSON)"),
        ('{"id": 1} {"id": 2}', "no JSON (Extra data"),
        ("[" * 100_000, "nested too deeply"),
        ('```json\n{"id": 1}\n```', "no JSON (Expecting value"),
    ],
)
def test_what_is_no_json_is_said(reply, why):
    passed, score, reason = of(ReplyShape(ORDER), replying(reply))
    assert (passed, score) == (False, 0)
    assert reason.startswith(f"reply 1: {why}")
    assert len(reason) < 300


@each_row("reply", ['```json\n{"id": 1}\n```', ' ```\n{"id":\n1}\n``` ', '{"id": 1}'])
def test_a_code_block_is_taken_where_it_is_allowed(reply):
    assert of(ReplyShape(ORDER, fenced=True), replying(reply))[0]


def test_which_replies():
    episode = replying('{"id": 1}', "no", '{"id": 3}')
    assert of(ReplyShape(ORDER), episode)[0]
    assert of(ReplyShape(ORDER, 1), episode)[0]
    assert of(ReplyShape(ORDER, 2), episode)[2].startswith("reply 2: no JSON")
    passed, score, reason = of(ReplyShape(ORDER, "every"), episode)
    assert (passed, score) == (False, pytest.approx(2 / 3))
    assert reason.startswith("reply 2: no JSON")
    assert of(ReplyShape(ORDER, 4), episode) == (False, 0, "the agent replied 3 times")
    assert of(ReplyShape(ORDER, "every"), talk()) == (False, 0, "the agent never replied")


def test_a_reply_is_what_the_agent_says_last_before_the_user_speaks():
    episode = talk(
        "go", turn("Let me look.", tool_calls=[tool_call()]), turn('{"id": 1}'), turn("")
    )
    assert of(ReplyShape(ORDER, "every"), episode)[0]
    assert not of(ReplyShape(ORDER), talk("go", turn('{"id": 1}'), "and?"))[0]


def test_names():
    def name(check):
        return check.assertions(replying("{}"))[0].name

    assert name(ReplyShape(ORDER)) == "the last reply is JSON of the schema Order"
    assert name(ReplyShape({}, "every")) == "every reply is JSON of its schema"
    assert name(ReplyShape(Order, 2)) == "reply 2 is JSON of the type Order"
    assert name(ReplyShape(list[int])) == "the last reply is JSON of the type list[int]"
    assert name(ArgumentShape("find", Order)) == "arguments of find are JSON of the type Order"


@each_row(
    ("check", "calls", "said"),
    [
        (
            ArgumentShape("find", ORDER),
            [{"id": 1}, {"id": 2}],
            (True, 1, "called twice, all conform"),
        ),
        (
            ArgumentShape("find", ORDER),
            [{"id": 1}, {}],
            (False, 0.5, "call 2: $: 'id' is a required property"),
        ),
        (ArgumentShape("find", Order), [{"id": 1, "due": "2026-01-31"}], True),
        (ArgumentShape("find", ORDER), ["{broken"], False),
        (ArgumentShape("find", ORDER), [], (False, 0, "find was never called")),
        (ArgumentShape("find", ORDER, optional=True), [], True),
    ],
)
def test_arguments(check, calls, said):
    made = [tool_call("find", arguments=arguments) for arguments in calls]
    found = of(check, calling(*made, tool_call("other", arguments={})))
    assert (found if isinstance(said, tuple) else found[0]) == said


def test_another_draft_is_named_by_the_schema():
    # `items` as a list means a tuple up to draft 2019-09; 2020-12 has `prefixItems` for it.
    schema = {"items": [{"type": "integer"}]}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    assert not of(ReplyShape(old), replying('["x"]'))[0]
    with pytest.raises(InputError, match="the schema is none"):
        ReplyShape(schema)


def test_a_schema_may_refer_to_itself_and_to_the_draft_s_own():
    tree = {"type": "object", "additionalProperties": {"$ref": "#"}}
    assert of(ReplyShape(tree), replying('{"a": {"b": {}}}'))[0]
    assert not of(ReplyShape(tree), replying('{"a": {"b": 1}}'))[0]
    meta = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert not of(ReplyShape(meta), replying('{"type": 3}'))[0]
    assert of(
        ReplyShape({"$id": "https://x.invalid/a", "$ref": "/b", "$defs": {"b": {"$id": "/b"}}}),
        replying("1"),
    )[0]


def test_nothing_is_fetched():
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/schema.json"
        for schema in (
            {"$ref": url},
            {"properties": {"a": {"items": {"$ref": url}}}},
            {"$dynamicRef": url},
        ):
            with pytest.raises(InputError, match=r"refers to .*schema\.json.*nothing is fetched"):
                ReplyShape(schema)
        server.shutdown()
    assert asked == []


@each_row(
    ("make", "sentence"),
    [
        (lambda: ReplyShape({"type": "objekt"}), r"ReplyShape: the schema is none: \$\.type: "),
        (lambda: ArgumentShape("x", {"required": "id"}), r"ArgumentShape: the schema is none"),
        (
            lambda: ReplyShape({"$ref": "#/$defs/no"}),
            r"refers to '/\$defs/no'|refers to '#/\$defs/no'",
        ),
        (lambda: ReplyShape(3), "neither a JSON Schema nor a type that pydantic validates"),
        (
            lambda: ReplyShape({}, "first"),
            r"ReplyShape\.which: must be last, every or a whole number",
        ),
        (
            lambda: ReplyShape({}, 0),
            r"ReplyShape\.which: must be last, every or a whole number of at least 1",
        ),
        (lambda: ReplyShape({}, True), r"ReplyShape\.which: must be last, every or a whole number"),
    ],
)
def test_a_shape_that_is_none_is_refused_when_the_check_is_made(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
