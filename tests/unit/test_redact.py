"""Secrets out of everything that is written, at a cost that grows with the text alone."""

from __future__ import annotations

import base64
import html
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.redact import REDACTED, Redactor, is_secret_name

NONE = Redactor()
FILL = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef==\n-----END RSA PRIVATE KEY-----"

TOKENS = {
    "github": "ghp_" + FILL[:36],
    "github app": "ghs_" + FILL[:36],
    "github fine-grained": "github_pat_" + FILL + "_" + FILL,
    "openai": "sk-proj-" + FILL,
    "anthropic": "sk-ant-api03-" + FILL + "-AA",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws session": "ASIAIOSFODNN7EXAMPLE",
    "google": "AIza" + FILL[:35],
    "slack": "xoxb-1234567890-" + FILL[:24],
    "gitlab": "glpat-" + FILL[:20],
    "npm": "npm_" + FILL[:36],
    "pypi": "pypi-" + FILL * 2,
    "stripe": "sk_live_" + FILL[:24],
    "jwt": f"eyJ{FILL[:20]}.eyJ{FILL[:20]}.{FILL[:20]}",
    "pem": PEM,
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("text", ["{}", "key={}, more", '{{"key": "{}"}}', "({})"])
def test_tokens_are_known_by_their_shape(token, text):
    assert NONE.text(text.format(token)) == text.format(REDACTED)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ('"authorization": "Basic dXNlcjpwdw=="', '"authorization": "Basic [redacted]"'),
        ("curl -H 'x: Bearer abcdefghijklmnop'", "curl -H 'x: Bearer [redacted]'"),
        ("https://bob:hunter2@host/x", "https://bob:[redacted]@host/x"),
        ("redis://:hunter2@host", "redis://:[redacted]@host"),
    ],
)
def test_only_the_secret_part_goes(text, clean):
    assert NONE.text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "a task-force-of-people-who-like-long-names",
        "risk-sk-1",
        "AKIA is a prefix",
        "https://example.com:8080/a@b",
        "the bearer of this letter",
        "eyJ",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    ],
)
def test_ordinary_text_stays(text):
    assert NONE.text(text) == text


SECRET = 'p"ä<w&rd/+ 7'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        repr(SECRET)[1:-1],
        html.escape(SECRET),
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_variables_secret_goes_in_every_form(form):
    redactor = Redactor.from_environ({"DESK_PASSWORD": SECRET})
    assert redactor.text(f"before {form} after") == f"before {REDACTED} after"


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_base64_hides_no_secret_at_any_offset(before, after):
    secret = b"correct horse battery"
    redactor = Redactor.from_environ({"DESK_PASSWORD": secret.decode()})
    text = redactor.text(base64.b64encode(before + secret + after).decode())
    assert REDACTED in text
    left = text.replace(REDACTED, "")
    assert len(left) <= len(base64.b64encode(before + after)) + 8


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "MYAPIKEY",
        "PGPASSWORD",
        "SSH_PRIVATE_KEY",
        "GOOGLE_CREDENTIALS",
        "BASIC_AUTH",
        "SLACK_WEBHOOK_URL",
        "INPUT_GITHUB-TOKEN",
        "token",
        "STRIPE_KEY",
    ],
)
def test_names_that_say_secret(name):
    assert is_secret_name(name)
    redactor = Redactor.from_environ({name: "Zx9-plain-value"})
    assert redactor.text("a Zx9-plain-value b") == "a [redacted] b"


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "GITHUB_TOKEN_PATH",
        "MAX_TOKENS",
        "TOKENIZERS_PARALLELISM",
        "SSH_AUTH_SOCK",
        "PWD",
        "AUTHOR",
        "KEYBOARD",
        "CACHE_KEY",
        "TOKEN_LIMIT",
        "PASSWORD_FILE",
        "AUTH_PROVIDER",
    ],
)
def test_names_that_only_sound_so(name):
    assert Redactor.from_environ({name: "Zx9-plain-value"}).secrets == ()


@pytest.mark.parametrize("value", ["short", "true", "required", "12345678", "/run/secrets/token"])
def test_values_too_common_to_be_secret(value):
    assert Redactor.from_environ({"DESK_TOKEN": value}).secrets == ()


def test_the_password_of_a_url_is_secret_by_itself():
    redactor = Redactor.from_environ({"DATABASE_URL": "postgres://desk:Zx9plain@host/db"})
    assert redactor.text("login failed for Zx9plain") == "login failed for [redacted]"


def test_each_line_of_a_long_secret_is_secret():
    line = "MIIEpAIBAAKCAQEA7"
    redactor = Redactor.from_environ({"DEPLOY_KEY": f"-----BEGIN X-----\n{line}\n-----END X-----"})
    assert redactor.text(f"found {line}!") == "found [redacted]!"


def test_longer_secrets_go_first():
    redactor = Redactor.from_environ({"A_TOKEN": "abcdefgh-1", "B_TOKEN": "abcdefgh-1234"})
    assert redactor.text("abcdefgh-1234") == REDACTED


def test_values_are_redacted_in_keys_and_depth():
    token = TOKENS["github"]
    value = {token: [{"a": [f"x {token}"]}, 1, None, True, 1.5]}
    assert NONE.value(value) == {REDACTED: [{"a": [f"x {REDACTED}"]}, 1, None, True, 1.5]}


def test_a_key_over_many_lines_of_output_is_one_mark():
    lines = [f"a\n{PEM}".replace("\n", " \n") + " tail\n", *f"b\n{PEM} c\nd\n".splitlines(True)]
    assert "".join(NONE.lines(lines)) == f"a \n{REDACTED} tail\nb\n{REDACTED} c\nd\n"


def test_a_key_that_never_ends_does_not_swallow_the_rest():
    lines = ["-----BEGIN PRIVATE KEY-----\n", *(f"line {number}\n" for number in range(1000))]
    assert list(NONE.lines(lines))[-1] == "line 999\n"


def test_the_secrets_are_not_in_the_repr():
    assert "Zx9" not in repr(Redactor.from_environ({"DESK_TOKEN": "Zx9-plain-value"}))


HOSTILE = [
    "sk-", "eyJ", "eyJaaaaaaaa.", "eyJ" + "a" * 8000 + ".", "://", "://a:", "a:b@", "AKIA", "ghp_",
    "authorization ", "authorization: bearer ", "Bearer ", "-----BEGIN ", "xox", "npm_",
    "-----BEGIN PRIVATE KEY-----",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE, ids=lambda piece: piece[:30])
def test_a_megabyte_of_hostile_text_takes_a_moment(piece):
    text = piece * (1_000_000 // len(piece))
    started = time.perf_counter()
    NONE.text(text)
    # Measured 0.01 to 0.04 s; a pattern that tries again from every place takes minutes.
    assert time.perf_counter() - started < 2
