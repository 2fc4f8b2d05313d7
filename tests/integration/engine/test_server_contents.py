"""Prompts and resources of a real MCP server."""

from __future__ import annotations

import sys

import pytest

from ci_agent_eval.engine import (
    MCPServer,
    ServerError,
    get_prompt,
    list_prompts,
    list_resource_templates,
    list_resources,
    read_resource,
)
from ci_agent_eval.errors import InputError
from tests.integration.engine.rig import go
from tests.servers.gallery import PIXEL
from tests.servers.rig import GALLERY, a_bank
from tests.tables import each_row

SERVER = MCPServer([sys.executable, GALLERY], name="gallery")


def test_prompts_are_listed_and_filled_in():
    (prompt,) = go(list_prompts(SERVER))
    needed = {argument.name: argument.required for argument in prompt.arguments}
    assert (prompt.name, needed) == ("describe_picture", {"title": True, "style": False})
    messages = go(get_prompt(SERVER, "describe_picture", {"title": "Dawn"}))
    assert messages == [{"role": "user", "content": "Describe Dawn in a short text."}]


def test_resources_are_listed_and_read():
    assert "gallery://opening-hours" in [one.uri for one in go(list_resources(SERVER))]
    (template,) = go(list_resource_templates(SERVER))
    assert template.uri_template == "gallery://pictures/{title}"
    assert go(read_resource(SERVER, "gallery://opening-hours")) == "10:00 to 18:00"
    picture = go(read_resource(SERVER, "gallery://pictures/pixel"))
    assert (picture.data, picture.media_type) == (PIXEL, "image/png")


def test_a_server_without_any_has_none():
    assert (go(list_prompts(a_bank())), go(list_resources(a_bank()))) == ((), ())


@each_row(
    ("ask", "said"),
    [
        (lambda: get_prompt(SERVER, "nope"), "server 'gallery' refused the prompt 'nope': Unknown"),
        (lambda: get_prompt(SERVER, "describe_picture"), "Missing required arguments: {'title'}"),
        (lambda: read_resource(SERVER, "gallery://nope"), "refused the resource gallery://nope: "),
        (lambda: read_resource(SERVER, "nope"), "read_resource.uri: must be a full address"),
    ],
)
def test_a_refused_request_is_no_fault_of_the_server(ask, said):
    with pytest.raises(InputError) as refused:
        go(ask())
    assert said in str(refused.value)


def test_a_server_that_ends_is_an_infrastructure_error():
    with pytest.raises(ServerError, match="was lost during the resource gallery://crash"):
        go(read_resource(SERVER, "gallery://crash"))
