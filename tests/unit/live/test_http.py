"""A worker's HTTP server and client, against each other."""

import asyncio
import ssl
from itertools import count
from pathlib import Path

import pytest

from coordinator_sim.connect.effects import AnswerHttp, CallHttp, HttpRequest, HttpResponse
from coordinator_sim.errors import ConfigError
from coordinator_sim.live.http_client import REFUSED, RestClient
from coordinator_sim.live.http_server import RestServer
from coordinator_sim.live.rest_security import PUBLIC, client_context, server_context
from tests.key_stores import key_store


class Calls:
    """A client that waits for each answer."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.client = RestClient(self.answered, tls)
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


async def _over_tls(
    server_settings: dict[str, str], client_settings: dict[str, str]
) -> tuple[list[HttpRequest], object]:
    """A request to an https listener; what arrived, and what came back."""
    arrived: list[HttpRequest] = []

    def requested(number: int, taken: HttpRequest) -> None:
        arrived.append(taken)
        server.answer(AnswerHttp(exchange=number, response=HttpResponse(status=200, body=b"x")))

    server = RestServer("127.0.0.1", 0, requested, tls=server_context(server_settings, PUBLIC))
    server.start()
    calls = Calls(client_context(client_settings))
    answer = await calls.call(
        f"https://127.0.0.1:{server.port}/", HttpRequest(method="GET", target="/")
    )
    await calls.client.close()
    await server.stop()
    return arrived, answer


@pytest.mark.parametrize("kind", ["PKCS12", "PEM"])
def test_an_https_listener_has_the_certificate_of_its_key_store(kind: str, tmp_path: Path) -> None:
    """Its client trusts it by the store that the same settings name; others refuse it."""
    settings = key_store(tmp_path, kind, prefix=PUBLIC)
    arrived, answer = asyncio.run(_over_tls(settings, settings))
    assert [each.scheme for each in arrived] == ["https"]
    assert isinstance(answer, HttpResponse)
    assert answer.body == b"x"

    arrived, answer = asyncio.run(_over_tls(settings, {}))
    assert arrived == []
    assert answer == REFUSED


def test_a_client_without_a_certificate_is_refused_where_one_is_required(tmp_path: Path) -> None:
    """`ssl.client.auth=required`, in settings without a prefix."""
    settings = key_store(tmp_path, "PKCS12", prefix="")
    required = {**settings, "ssl.client.auth": "required"}
    _, answer = asyncio.run(_over_tls(required, settings))
    assert isinstance(answer, HttpResponse)

    trusting = {name: text for name, text in settings.items() if "truststore" in name}
    arrived, answer = asyncio.run(_over_tls(required, trusting))
    assert arrived == []
    assert isinstance(answer, str)


def test_a_key_store_is_a_trust_store_of_its_own_certificate_too(tmp_path: Path) -> None:
    """As in Kafka: a worker may name one file for both."""
    settings = key_store(tmp_path, "PKCS12", prefix=PUBLIC)
    location = f"{PUBLIC}ssl.truststore.location"
    own = {**settings, location: settings[f"{PUBLIC}ssl.keystore.location"]}
    _, answer = asyncio.run(_over_tls(settings, own))
    assert isinstance(answer, HttpResponse)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"keystore.location": None}, "https needs a certificate: listeners.https.ssl.keystore.lo"),
        ({"keystore.location": "/no/such"}, "/no/such: No such file"),
        ({"keystore.type": "JKS"}, "ssl.keystore.type=JKS is not read; use PKCS12"),
        ({"keystore.password": "other"}, "no PKCS12, or another ssl.keystore.password"),
        ({"client.auth": "required", "truststore.location": None}, "needs listeners.https.ssl.tru"),
        ({"client.auth": "maybe"}, "ssl.client.auth=maybe: use none, requested or required"),
        ({"enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols=TLSv1.1: use TLSv1.2 or TLSv1.3"),
        ({"truststore.location": "/dev/null", "truststore.type": "PEM"}, "null: no certificates"),
        ({"keystore.location": "/dev/null", "keystore.type": "PEM"}, "or another ssl.key.password"),
    ],
)
def test_tls_that_cannot_be_set_up_is_refused(
    change: dict[str, str | None], words: str, tmp_path: Path
) -> None:
    """One line with the setting."""
    settings = key_store(tmp_path, "PKCS12", prefix=PUBLIC)
    for name, text in change.items():
        settings.pop(f"{PUBLIC}ssl.{name}", None)
        if text is not None:
            settings[f"{PUBLIC}ssl.{name}"] = text
    with pytest.raises(ConfigError, match=words):
        server_context(settings, PUBLIC)


def test_listeners_of_one_worker_number_their_requests_together() -> None:
    """So that an answer finds its request by the number alone."""

    async def both() -> list[int]:
        numbers: list[int] = []

        def requested(number: int, _: HttpRequest) -> None:
            numbers.append(number)
            for server in servers:
                server.answer(AnswerHttp(exchange=number, response=HttpResponse(status=200)))

        exchanges = count(1)
        servers = [RestServer("127.0.0.1", 0, requested, exchanges=exchanges) for _ in range(2)]
        calls = Calls()
        for server in servers:
            server.start()
        for server in servers:
            url = f"http://127.0.0.1:{server.port}/"
            await calls.call(url, HttpRequest(method="GET", target="/"))
        await calls.client.close()
        for server in servers:
            await server.stop()
        return numbers

    assert asyncio.run(both()) == [1, 2]
