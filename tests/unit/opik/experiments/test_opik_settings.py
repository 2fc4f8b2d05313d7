"""Whether Opik is configured, and where."""

from __future__ import annotations

import base64
import json

import pytest

from ci_agent_eval.opik.experiments.push import (
    CLOUD,
    OpikServer,
    find_server,
    load_opik_file,
)


def key_with(attributes):
    return "a" * 25 + "*" + base64.b64encode(json.dumps(attributes).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("environ", "file", "url"),
    [
        ({}, {}, None),
        ({"OPIK_WORKSPACE": "w"}, {"workspace": "w"}, None),
        ({"OPIK_API_KEY": "k"}, {}, CLOUD),
        ({}, {"api_key": "k"}, CLOUD),
        ({"OPIK_URL_OVERRIDE": "http://a/"}, {"url_override": "http://b/"}, "http://a/"),
        ({}, {"url_override": "http://b/", "api_key": "k"}, "http://b/"),
        ({"OPIK_API_KEY": key_with({"baseUrl": "https://c/"})}, {}, "https://c/opik/api/"),
        ({"OPIK_API_KEY": key_with({})}, {}, CLOUD),
        ({"OPIK_API_KEY": "k*%%%"}, {}, CLOUD),
        ({"OPIK_API_KEY": key_with([])}, {}, CLOUD),
    ],
)
def test_the_server_is_the_one_that_opik_would_take(environ, file, url):
    assert find_server(environ, file) == (None if url is None else OpikServer(url))


def test_the_host_is_shown_without_credentials():
    assert OpikServer("https://me:secret@host:5173/api/").host == "host:5173"


def test_opik_s_file_is_read_where_it_is(tmp_path):
    (tmp_path / ".opik.config").write_text("[opik]\nurl_override = http://a%b/\n")
    assert load_opik_file({}, tmp_path) == {"url_override": "http://a%b/"}
    (tmp_path / "other").write_text("[opik]\nworkspace = w\n")
    named = {"OPIK_CONFIG_PATH": str(tmp_path / "other")}
    assert load_opik_file(named, tmp_path) == {"workspace": "w"}


@pytest.mark.parametrize("content", [b"", b"[other]\na=1", b"no section", b"\xff\xfe[opik"])
def test_a_file_that_cannot_be_read_configures_nothing(tmp_path, content):
    (tmp_path / ".opik.config").write_bytes(content)
    assert load_opik_file({}, tmp_path) == {}
    assert load_opik_file({}, tmp_path / "nowhere") == {}
