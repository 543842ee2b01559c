"""A worker's HTTP server and client, against each other."""

import asyncio

import pytest

from coordinator_sim.connect.effects import AnswerHttp, CallHttp, HttpRequest, HttpResponse
from coordinator_sim.errors import ConfigError
from coordinator_sim.live.http_client import REFUSED, RestClient
from coordinator_sim.live.http_server import RestServer


class Calls:
    """A client that waits for each answer."""

    def __init__(self) -> None:
        self.client = RestClient(self.answered)
        self.waiting: dict[int, asyncio.Future[object]] = {}

    def answered(self, token: int, value: object, error: str | None) -> None:
        """Take an outcome."""
        self.waiting[token].set_result(error if error is not None else value)

    async def call(self, url: str, request: HttpRequest) -> object:
        """The answer, or the error."""
        token = len(self.waiting)
        self.waiting[token] = asyncio.get_running_loop().create_future()
        self.client.call(CallHttp(token=token, url=url, request=request))
        return await asyncio.wait_for(self.waiting[token], 10)


async def exchange(request: HttpRequest, response: HttpResponse) -> tuple[HttpRequest, object]:
    """Send a request over a socket; what arrived, and what came back."""
    arrived: list[HttpRequest] = []

    def requested(number: int, taken: HttpRequest) -> None:
        arrived.append(taken)
        server.answer(AnswerHttp(exchange=number, response=response))

    server = RestServer("127.0.0.1", 0, requested)
    server.start()
    calls = Calls()
    answer = await calls.call(f"http://127.0.0.1:{server.port}/", request)
    await calls.client.close()
    await server.stop()
    return arrived[0], answer


def test_requests_and_answers_pass_through_as_they_are() -> None:
    """Path and query escaped as sent, headers in small letters, bodies byte by byte."""
    request = HttpRequest(
        method="PUT",
        target="/connectors/a%2Fb/config?forward=false",
        headers={"x-connect-authorization": "c2ln", "content-type": "application/json"},
        body=b'{"a":"\xc3\xa9"}',
    )
    response = HttpResponse(
        status=201, headers={"content-type": "application/json", "location": "/x"}, body=b"[]"
    )

    arrived, answer = asyncio.run(exchange(request, response))

    assert (arrived.method, arrived.target, arrived.body) == ("PUT", request.target, request.body)
    assert arrived.headers["x-connect-authorization"] == "c2ln"
    assert isinstance(answer, HttpResponse)
    assert (answer.status, answer.body) == (201, b"[]")
    assert answer.headers["location"] == "/x"


def test_an_answer_without_content_has_none() -> None:
    """204 has neither body nor type."""
    _, answer = asyncio.run(
        exchange(HttpRequest(method="DELETE", target="/connectors/a"), HttpResponse(status=204))
    )

    assert isinstance(answer, HttpResponse)
    assert (answer.status, answer.body) == (204, b"")


def test_nobody_listening_is_told_as_java_tells_it() -> None:
    """The reason goes into the message of the error that a forwarded request gets."""

    async def call() -> object:
        calls = Calls()
        outcome = await calls.call("http://127.0.0.1:1", HttpRequest(method="GET", target="/"))
        await calls.client.close()
        return outcome

    assert asyncio.run(call()) == REFUSED


def ignored(_exchange: int, _request: HttpRequest) -> None:
    """Nobody asks."""


def test_a_taken_address_is_refused_in_one_line() -> None:
    """The message names the address and the setting."""

    async def twice() -> None:
        first = RestServer("127.0.0.1", 0, ignored)
        try:
            RestServer("127.0.0.1", first.port, ignored)
        finally:
            await first.stop()

    with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:\d+.*listeners"):
        asyncio.run(twice())
