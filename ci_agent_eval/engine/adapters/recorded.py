"""An agent that repeats the requests of its cassette: the first agent of an imported trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import httpx2
from pydantic import Field

from ci_agent_eval.contract.fields import validate_fields
from ci_agent_eval.engine.adapters.protocol import AgentTask, Reply
from ci_agent_eval.engine.cassette.document import Take
from ci_agent_eval.engine.cassette.traffic_request import TrafficRequest
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.formats.registry import find_format
from ci_agent_eval.model_traffic.message_logs import ADDRESSES
from ci_agent_eval.model_traffic.messages import ModelAnswer


@dataclass
class RecordedAgent:
    """Repeats the model requests of an imported trace, so that its test passes before you edit it.

    It calls no tool, and works in replay only. Replace it by your agent: then the test shows
    whether your agent still makes these requests.
    """

    requests_per_message: Sequence[Annotated[int, Field(ge=1)]]
    """Number of requests that answer each message of the user, in order."""
    name: str | None = None
    model: str | None = None
    _messages: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        validate_fields(self)

    @property
    def label(self) -> str:
        """The name of the agent in reports."""
        return self.name or type(self).__name__

    async def answer(self, work: AgentTask) -> None:
        """Send the requests of the next message; the last answer is the reply.

        Raises InputError outside of a replay, and for a cassette with fewer requests.
        """
        session = work.cassette_session
        if session is None or session.mode != "replay":
            raise InputError(
                "RecordedAgent only repeats the requests of a cassette; run with "
                "--cassette=replay, or return your agent in its place"
            )
        answer = ModelAnswer()
        async with httpx2.AsyncClient() as client:
            for number in self._take_numbers(session.recorded_take):
                answer = await _send_request(client, session.recorded_take, number)
        work.set_reply(Reply(answer.text, finish_reason=answer.finish_reason))

    def _take_numbers(self, take: Take) -> range:
        """Return the numbers, from 1, of the exchanges that answer the next message."""
        known, place = self.requests_per_message, self._messages
        first = sum(known[:place]) + 1
        last = first + known[place] if place < len(known) else len(take) + 2
        if last > len(take) + 1:
            raise InputError(
                f"RecordedAgent has no recorded requests for message {place + 1}; correct "
                "requests_per_message, or import the trace again"
            )
        self._messages += 1
        return range(first, last)


async def _send_request(client: httpx2.AsyncClient, take: Take, number: int) -> ModelAnswer:
    request = take[number - 1].request
    address = ADDRESSES.get(request.format) if isinstance(request, TrafficRequest) else None
    message_format = None if address is None else find_format("POST", address)
    if not isinstance(request, TrafficRequest) or address is None or message_format is None:
        raise InputError("RecordedAgent repeats only requests that `agent-eval import` has written")
    body = dict(request.body)
    if request.previous is not None:
        body["previous_response_id"] = take[request.previous - 1].response["json"]["id"]
    response = await client.post(address, json=body)
    headers = dict(response.headers)
    assembler = message_format.create_assembler(response.status_code, headers)
    assembler.feed(response.content)
    return assembler.answer
