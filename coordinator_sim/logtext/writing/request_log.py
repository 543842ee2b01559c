"""Writes exchanges as the lines of a broker's request log, as Kafka writes them since 2.8.

Source: kafka 2.8 to 4.4, RequestChannel.updateRequestMetrics, RequestConvertToJson.requestDesc:
names and order of the fields; config/log4j.properties: the layout of a line.
"""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from coordinator_sim.messages.catalogue import layout_of
from coordinator_sim.messages.codec.answers import fitted
from coordinator_sim.messages.codec.json_form import Json, to_json
from coordinator_sim.trace.exchange import Exchange

_US_PER_SECOND: Final = 1_000_000
_PORT: Final = 9092
_LOGGER: Final = "kafka.request.logger"


def request_line(exchange: Exchange) -> str:
    """The line of one answered request, without line end; its time is in UTC.

    Raises:
        UnsupportedVersion: The version cannot say what a message holds.
    """
    seconds, rest_us = divmod(exchange.sent_us, _US_PER_SECOND)
    at = datetime.fromtimestamp(seconds, UTC)
    document = msgspec.json.encode(_document(exchange)).decode()
    return (
        f"[{at:%Y-%m-%d %H:%M:%S},{rest_us // 1_000:03}] DEBUG "
        f"Completed request:{document} ({_LOGGER})"
    )


def _document(exchange: Exchange) -> Json:
    api = type(exchange.request).api_key
    version = exchange.api_version
    broker = f"broker-{exchange.broker_id}" if exchange.broker_id is not None else "broker"
    client = (exchange.client_host or "/127.0.0.1").removeprefix("/")
    return {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": int(api),
            "requestApiVersion": version,
            "correlationId": exchange.correlation_id,
            "clientId": exchange.client_id,
            "requestApiKeyName": api.name,
        },
        "request": _message(api, version, exchange.request, response=False),
        "response": _message(
            api,
            version,
            None
            if exchange.response is None
            else fitted(exchange.response, version, exchange.request),
            response=True,
        ),
        "connection": f"{broker}:{_PORT}-{client}:{_PORT}-{exchange.connection}",
        **_times(exchange),
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": "unknown", "softwareVersion": "unknown"},
    }


def _times(exchange: Exchange) -> Json:
    return {
        "totalTimeMs": (exchange.sent_us - exchange.asked_us) / 1_000,
        "requestQueueTimeMs": 0.0,
        "localTimeMs": 0.0,
        "remoteTimeMs": (exchange.done_us - exchange.asked_us) / 1_000,
        "throttleTimeMs": 0,
        "responseQueueTimeMs": 0.0,
        "sendTimeMs": (exchange.sent_us - exchange.done_us) / 1_000,
    }


def _message(api: Any, version: int, message: Any, *, response: bool) -> Json | None:  # noqa: ANN401 - any of our messages
    if message is None:
        return None
    return to_json(layout_of(api, version, response=response), message)
