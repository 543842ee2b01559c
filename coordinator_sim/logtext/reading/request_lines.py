"""Lines of a broker's request log: the request, the answer, and how long each step took.

Since 2.8 a line holds one JSON object, with embedded bytes in base64. Brokers up to 2.7 print
structures as text: embedded bytes are lost in them, and up to 0.10.2 so is the answer. A line is
written when the answer was sent; the request had come `totalTime` before.

Source: kafka trunk and 2.7, RequestChannel.updateRequestMetrics; kafka 2.8 and later,
RequestConvertToJson.requestDesc.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError, DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.logtext.reading.envelopes import peel
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.request_text import RequestText, read_request_text
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.logtext.reading.text import clean
from coordinator_sim.messages.catalogue import (
    layout_of,
    name_of,
    newest_version,
    structs_module,
)
from coordinator_sim.messages.codec.json_form import Json, JsonReader
from coordinator_sim.trace.exchange import TOLD_APIS, Exchange

MARK: Final = "Completed request:"
_LINE_ERR_US: Final = 1_000
_NUMBERS: Final = re.compile(r"(?:-\d+)+$")
_US_OF_MS: Final = 1_000
_BAD: Final = (CoordinatorSimError, KeyError, TypeError, ValueError, AttributeError)
"""What a line that is cut, redacted or of a newer Kafka makes of reading it."""


class _Timed(Struct, frozen=True):
    """Times (microseconds) and connection of a request-log line, without the messages."""

    total_us: int
    sending_us: int
    connection: str
    client_software: str = ""


class RequestLog:
    """Reads the lines of one request log.

    Args:
        tz: Zone of the times that do not name one.
        summary: Receives the counts.
        source_ref: Names the log in its exchanges.
        keep_raw: Whether exchanges carry their line.
        day_first: See `InstantReader`.
    """

    def __init__(
        self,
        tz: tzinfo,
        *,
        summary: IngestSummary | None = None,
        source_ref: str = "",
        keep_raw: bool = False,
        day_first: bool = False,
    ) -> None:
        self._source_ref = source_ref
        self.summary = IngestSummary() if summary is None else summary
        self._keep_raw = keep_raw
        self._instants = InstantReader(tz, day_first=day_first)
        self._readers: dict[ApiKey, JsonReader] = {}
        self._last_us: int | None = None

    def read(self, lines: Iterable[str]) -> Iterator[Exchange]:
        """Yield the exchanges that concern groups, in line order. May be called once."""
        for number, line in enumerate(lines, 1):
            self.summary.lines += 1
            if MARK in line:
                found = self._line(number, line)
                if found is not None:
                    yield found

    def _line(self, number: int, line: str) -> Exchange | None:
        envelope = peel(clean(line), self._instants)
        self.summary.count_layout(f"requests, {envelope.layout}")
        body = envelope.message.partition(MARK)[2].lstrip()
        instant = envelope.instant
        if instant is None:
            self.summary.count_unparsed(f"{MARK} without a time")
            return None
        if self._last_us is not None and instant.ts_us < self._last_us:
            self.summary.clock_regressions += 1
        self._last_us = instant.ts_us
        try:
            told = self._json(body) if body.startswith("{") else self._text(body)
        except _BAD as error:
            self.summary.count_unparsed(f"{MARK} {_reason(error)}")
            return None
        if told is None:
            self.summary.known += 1
            return None
        header, request, response, timed, has_bytes = told
        self.summary.parsed += 1
        sent_us = instant.ts_us
        return Exchange(
            asked_us=sent_us - timed.total_us,
            done_us=sent_us - timed.sending_us,
            sent_us=sent_us,
            seq=number,
            request=request,
            response=response,
            api_version=header["version"],
            correlation_id=header["correlation_id"],
            client_id=header["client_id"],
            client_host=_host(timed.connection),
            has_bytes=has_bytes,
            connection=timed.connection,
            client_software=timed.client_software,
            ts_err_us=max(instant.err_us, _LINE_ERR_US),
            raw=line.strip() if self._keep_raw else None,
            source_ref=self._source_ref,
        )

    def _json(self, body: str) -> tuple[Json, Any, Any, _Timed, bool] | None:
        """Return what a line since 2.8 tells; None for a request that is of no group."""
        node, _ = json.JSONDecoder().raw_decode(body)
        header = node["requestHeader"]
        api = _told_api(int(header["requestApiKey"]))
        if api is None:
            return None
        version = int(header["requestApiVersion"])
        software = node.get("clientInformation") or {}
        names = (software.get("softwareName"), software.get("softwareVersion"))
        timed = _Timed(
            _us(node["totalTimeMs"]),
            _us(node.get("responseQueueTimeMs", 0)) + _us(node.get("sendTimeMs", 0)),
            str(node.get("connection", "")),
            " ".join(str(name) for name in names if name),
        )
        return (
            {
                "version": version,
                "correlation_id": int(header["correlationId"]),
                "client_id": header.get("clientId"),
            },
            self._message(api, version, node["request"], response=False),
            self._message(api, version, node.get("response"), response=True),
            timed,
            True,
        )

    def _text(self, body: str) -> tuple[Json, Any, Any, _Timed, bool] | None:
        """Return what a line up to 2.7 tells; None for a request that is of no group."""
        told: RequestText = read_request_text(body)
        api = _told_api(told.api_key)
        if api is None:
            return None
        times = told.times_ms
        timed = _Timed(
            _us(times["totalTime"]),
            _us(times.get("responseQueueTime", 0)) + _us(times.get("sendTime", 0)),
            told.connection,
        )
        return (
            {
                "version": told.api_version,
                "correlation_id": told.correlation_id,
                "client_id": told.client_id,
            },
            self._message(api, told.api_version, told.request, response=False),
            self._message(api, told.api_version, told.response, response=True),
            timed,
            False,
        )

    def _message(self, api: ApiKey, version: int, node: object, *, response: bool) -> Any:  # noqa: ANN401 - any of our messages
        if not isinstance(node, Mapping):
            return None
        reader = self._readers.get(api)
        if reader is None:
            reader = self._readers[api] = JsonReader(structs_module(name_of(api)))
        layout = layout_of(api, min(version, newest_version(api)), response=response)
        return reader.read(layout, node, defaulted=True)


def _told_api(api_key: int) -> ApiKey | None:
    return next((api for api in TOLD_APIS if api == api_key), None)


def _us(duration_ms: float) -> int:
    return max(0, round(float(duration_ms) * _US_OF_MS))


def _host(connection: str) -> str | None:
    """The client's address in a connection's name, `local:port-client:port-number`."""
    client = _NUMBERS.sub("", connection).rpartition("-")[2]
    host = client.rpartition(":")[0]
    return f"/{host}" if host else None


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "with JSON that is cut or broken"
    if isinstance(error, KeyError):
        return f"without {error.args[0]}"
    text = str(error) if isinstance(error, DataError) else type(error).__name__
    return f"that cannot be read: {text[:80]}"
