"""Calls of agents over HTTP, one try each."""

import asyncio
from typing import Final

import httpx

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.listening import bearer
from coordinator_sim.live.trogdor.host_platform import Told
from coordinator_sim.trogdor.agent_calls import AgentAnswers, request_of
from coordinator_sim.trogdor.contract import AgentCall, Answer, Failed, Quirks
from coordinator_sim.trogdor.coordinator_driver import Respond
from coordinator_sim.trogdor.topology import Topology

_PATIENCE_S: Final = 10.0
"""How long an agent may take to answer with quirks FIXED, or when the coordinator ends.

Java's client waits for ever.
"""
LARGEST_ANSWER: Final = 32 << 20
"""Bytes of the largest answer of an agent that is read.

DEVIATION: Java's client reads answers of any size; here a larger one is a missed heartbeat.
"""
_QUICKLY_READ: Final = 1 << 18
"""Bytes of an answer that is read at once; the reading of a longer one lets others go on."""


class AgentHttp:
    """The HTTP clients of a coordinator: one for each agent, so that none waits for another.

    Args:
        topology: Where the agents are.
        quirks: Whether an agent that does not answer is waited for, for ever.
        told: Takes a line when calls of an agent begin to fail, fail otherwise, or succeed again.
        token: Token that agents want; empty for none.
    """

    def __init__(self, topology: Topology, quirks: Quirks, told: Told, token: str = "") -> None:
        self._topology = topology
        self._patience_s = _PATIENCE_S if quirks is Quirks.FIXED else None
        self._told = told
        self._headers = bearer(token)
        self._answers = {node.name: AgentAnswers() for node in topology.managed()}
        # A pool for all of them would look at every connection for every call, and have a limit.
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}
        self._errors: dict[tuple[str, type[AgentCall]], str] = {}
        self._calls: set[asyncio.Task[None]] = set()

    def call(self, node: str, call: AgentCall, respond: Respond) -> None:
        """Make a call; `respond` gets what came of it."""
        task = asyncio.get_running_loop().create_task(self._call(node, call, respond))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def close(self) -> None:
        """Wait a while for the calls under way, such as those that tell agents to shut down."""
        if self._calls:
            _, unanswered = await asyncio.wait(self._calls, timeout=_PATIENCE_S)
            for call in unanswered:
                call.cancel()
        for transport in self._transports.values():
            await transport.aclose()

    async def _call(self, node: str, call: AgentCall, respond: Respond) -> None:
        answer = await self._answer(node, call)
        respond(answer)
        error = answer.error if isinstance(answer, Failed) else ""
        if error != self._errors.get((node, type(call)), ""):
            self._errors[node, type(call)] = error
            self._told(f"agent of {node}: {error or 'answers again'}")

    async def _answer(self, node: str, call: AgentCall) -> Answer:
        place = self._topology.nodes[node]
        request = request_of(call)
        url = f"http://{place.hostname}:{place.agent_port}{request.target}"
        try:
            async with asyncio.timeout(self._patience_s):
                response = await self._response(node, url, request)
        except TimeoutError:
            return Failed(f"{url}: no answer within {_PATIENCE_S:.0f} s")
        # A value error is a host name that cannot be looked up.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return Failed(f"{url}: {error or type(error).__name__}")
        if response is None:
            return Failed(f"{url}: the answer has more than {LARGEST_ANSWER} bytes")
        answer_of = self._answers[node].answer_of
        if len(response.body) > _QUICKLY_READ:
            return await asyncio.to_thread(answer_of, call, response)
        return answer_of(call, response)

    async def _response(self, node: str, url: str, request: HttpRequest) -> HttpResponse | None:
        """The answer to a request; None where it is too large.

        Raises:
            httpx.HTTPError, httpx.InvalidURL, ValueError: there is none.
        """
        if node not in self._transports:
            # Without certificates: agents speak plain HTTP.
            self._transports[node] = httpx.AsyncHTTPTransport(verify=False)
        sent = httpx.Request(
            request.method,
            url,
            headers={**request.headers, **self._headers},
            content=request.body or None,
        )
        answer = await self._transports[node].handle_async_request(sent)
        try:
            body = bytearray()
            async for part in answer.aiter_raw():
                body += part
                if len(body) > LARGEST_ANSWER:
                    return None
        finally:
            await answer.aclose()
        return HttpResponse(status=answer.status_code, body=bytes(body))
