"""Prompts and resources of a real MCP server."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from types import SimpleNamespace

import pytest

from ci_agent_eval.engine import (
    EngineSession,
    MCPServer,
    ServerError,
    get_prompt,
    list_prompts,
    list_resource_templates,
    list_resources,
    read_resource,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)
from tests.integration.engine.rig import go
from tests.servers.gallery import PIXEL
from tests.servers.rig import GALLERY, a_bank

SERVER = MCPServer([sys.executable, GALLERY], name="gallery")

REFUSED = [
    (lambda: get_prompt(SERVER, "nope"), "server 'gallery' refused the prompt 'nope': Unknown"),
    (lambda: get_prompt(SERVER, "describe_picture"), "Missing required arguments: {'title'}"),
    (lambda: read_resource(SERVER, "gallery://nope"), "refused the resource gallery://nope: "),
    (lambda: read_resource(SERVER, "nope"), "read_resource.uri: must be a full address"),
]


def test_an_episode_s_server_shows_its_prompts_and_resources():
    async def look():
        (prompt,) = await list_prompts(SERVER)
        needed = {argument.name: argument.required for argument in prompt.arguments}
        assert (prompt.name, needed) == ("describe_picture", {"title": True, "style": False})
        messages = await get_prompt(SERVER, "describe_picture", {"title": "Dawn"})
        assert messages == [{"role": "user", "content": "Describe Dawn in a short text."}]
        assert "gallery://opening-hours" in [one.uri for one in await list_resources(SERVER)]
        (template,) = await list_resource_templates(SERVER)
        assert template.uri_template == "gallery://pictures/{title}"
        assert await read_resource(SERVER, "gallery://opening-hours") == "10:00 to 18:00"
        picture = await read_resource(SERVER, "gallery://pictures/pixel")
        assert (picture.data, picture.media_type) == (PIXEL, "image/png")
        for ask, said in REFUSED:
            with pytest.raises(InputError) as refused:
                await ask()
            assert said in str(refused.value)
        assert (await list_prompts(a_bank()), await list_resources(a_bank())) == ((), ())

    async def in_an_episode():
        async with EngineSession(os.environ, time.monotonic) as session:
            runs = SimpleNamespace(engine=session, episode_id="e")
            recorder = EpisodeRecorder(build_initial_episode("e"), clock=time.monotonic)
            activate_episode(RunningEpisode("strict", recorder, fixture=lambda _: runs))
            try:
                await look()
            finally:
                deactivate_episode()

    asyncio.run(in_an_episode())


def test_a_server_that_ends_is_an_infrastructure_error():
    with pytest.raises(ServerError, match="was lost during the resource gallery://crash"):
        go(read_resource(SERVER, "gallery://crash"))
