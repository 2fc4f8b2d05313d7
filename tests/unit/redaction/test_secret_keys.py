"""Secrets in data by the key they stand under: hidden there, and nothing else is."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.schema import build_contract_schema
from ci_agent_eval.pytest_plugin.episodes.episode_files import redact_model
from ci_agent_eval.redaction import REDACTED, Redactor, is_secret_key, remove_secret_pairs
from ci_agent_eval.results.json_text import redact_json
from tests.builders import episode, tool_call, turn
from tests.tables import each_row


@each_row(
    "key",
    ["password", "Password", "userPassword", "new-password", "DB_PASSWD", "passwords", "password2",
     "passphrase", "passcode", "secret", "client_secret", "clientSecret", "credentials", "api_key",
     "apiKey", "APIKEY", "x-api-key", "access_key", "private_key", "secretAccessKey", "token",
     "access_token", "refreshToken", "authToken", "csrf token", "Authorization", "Set-Cookie"],
)  # fmt: skip
def test_keys_of_secrets(key):
    assert is_secret_key(key)


@each_row(
    "key",
    ["tokens", "max_tokens", "maxTokens", "total_tokens", "token_count", "tokenizer", "next_token",
     "nextPageToken", "page_token", "continuation_token", "eos_token", "key", "primary_key",
     "sort_key", "keyboard", "pass", "passed", "pwd", "author", "password_hint", "secretary",
     "credential_type", "api_key_id", "cookie_policy", "public_key", ""],
)  # fmt: skip
def test_keys_that_only_sound_so(key):
    assert not is_secret_key(key)


def names_of(schema):
    """Yield every name of a property in a JSON Schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from names_of(item)
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for value in schema.values():
            yield from names_of(value)


def test_no_key_of_the_contract_is_taken_for_a_secret_s():
    names = set(names_of(build_contract_schema()))
    assert {"token_usage", "tool_calls"} & names
    assert [name for name in names if is_secret_key(name)] == []


DATA = {
    "user": "bob",
    "password": "hunter2",
    "max_tokens": 100,
    "is_set": {"password": True, "token": None, "secret": False, "api_key": ""},
    "pin": {"passcode": 1234, "old_passcodes": [1, "2", True, None]},
    "credentials": {"name": "bob", "list": [{"apiKey": "k-1"}]},
    "body": '{"login": {"password": "hunter2", "user": "bob"}}',
}
CLEAN = {
    "user": "bob",
    "password": REDACTED,
    "max_tokens": 100,
    "is_set": {"password": True, "token": None, "secret": False, "api_key": ""},
    "pin": {"passcode": REDACTED, "old_passcodes": [REDACTED, REDACTED, True, None]},
    "credentials": {"name": "bob", "list": [{"apiKey": REDACTED}]},
    "body": f'{{"login": {{"password": "{REDACTED}", "user": "bob"}}}}',
}


def test_values_of_a_call_go_from_what_a_run_writes():
    """`results.json` and the journal are made of this."""
    call = tool_call(arguments=DATA, result=json.dumps(DATA))
    item = episode(trajectory={"turns": [turn(tool_calls=[call])]}, metadata={"login": DATA})
    (clean,) = redact_model(item, Redactor()).trajectory.turns[0].tool_calls
    assert clean.arguments == CLEAN
    assert "hunter2" not in redact_model(item, Redactor()).model_dump_json()
    assert json.loads(str(clean.result))["password"] == REDACTED


def test_values_of_a_call_go_from_what_a_report_reads():
    """The report and its page are made of this, whoever wrote the results."""
    assert redact_json(DATA, str) == CLEAN
    assert redact_json([DATA], str) == [CLEAN]


def test_what_holds_no_secret_is_the_very_same():
    call = tool_call(arguments={"token": [None], "key": "v"})
    item = episode(trajectory={"turns": [turn(tool_calls=[call])]})
    assert redact_model(item, Redactor()) is item


@each_row(
    ("text", "clean"),
    [
        ('{"password": "hunter2"}', '{"password": "[redacted]"}'),
        ('{"password" :"a \\" b", "x": 1}', '{"password" :"[redacted]", "x": 1}'),
        ("{'token': 'abc', 'x': 'y'}", "{'token': '[redacted]', 'x': 'y'}"),
        ("assert {'secret': 'it'} == 1", "assert {'secret': '[redacted]'} == 1"),
        ('cut off {"api_key": "hunter', 'cut off {"api_key": "[redacted]'),
        ('{"password": ""}', '{"password": ""}'),
        ('{"password": true, "max_tokens": "9"}', '{"password": true, "max_tokens": "9"}'),
        ('the "password": see below', 'the "password": see below'),
        ("my password is hunter2", "my password is hunter2"),
    ],
)
def test_texts_that_hold_data(text, clean):
    assert remove_secret_pairs(text) == clean


SECRETS = st.text(min_size=1, max_size=30)


@given(SECRETS, st.integers(0, 2))
def test_no_secret_is_left_in_json_however_often_it_is_quoted(secret, depth):
    secret = f"Zx9{secret}Yw8"
    text = json.dumps({"a": 1, "password": secret, "b": "end"})
    for _ in range(depth):
        text = json.dumps(text)
    clean = remove_secret_pairs(text)
    assert "Zx9" not in clean
    assert "Yw8" not in clean
    assert "end" in clean


@each_row("piece", ['"token":', '"token": "', '"', '\\"token\\":\\"', "'a': '"])
def test_a_megabyte_of_hostile_text_takes_a_moment(piece):
    assert remove_secret_pairs("password" + piece * (1_000_000 // len(piece))) is not None
