"""A TCP proxy that writes down the group frames between clients and a broker, and can do harm.

Every line of the file is one JSON object: `seq`, `t_ms` (since the first line), `step` (what was
being done), `conn` (a number for each connection), `dir`, and with a frame `api_key`,
`api_version`, `correlation_id`, `client_id`, `frame` (hex, header and body without the length).
`dir` is `req` or `resp`; `open` and `eof` for a connection; `note` for what a client's application
did, with `client_id` and `note`. A response that the proxy made itself has `injected`.

    python -m tools.record_proxy --listen 127.0.0.1:19092 --upstream 127.0.0.1:9092 --out f.jsonl

The broker must advertise the address the proxy listens on. Lines on standard input steer it:
`step NAME`, `note CLIENT TEXT`, `fault CLIENT API ERROR [COUNT]` (an error's name, or
`DISCONNECT`), `cut CLIENT`, `refuse`, `accept`.
"""

import argparse
import asyncio
import json
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.frames import (
    RequestHeader,
    read_header,
)
from coordinator_sim_conformance.field_frames import response_frame

GROUP_APIS: Final = frozenset({*range(8, 17), 18, 42, 47, 68, 69, 88})
"""APIs recorded by default: those of groups, offsets, and ApiVersions."""
DISCONNECT: Final = "DISCONNECT"
_LENGTH: Final = struct.Struct(">i")
_TURN_S: Final = 0.001
_START_TIMEOUT_S: Final = 10
_FAULTY: Final = (
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
)


@dataclass(slots=True)
class Fault:
    """Fault of the next requests of one API.

    Args:
        client_id: Client of the requests.
        api: API of the requests.
        error: Error answered instead of the broker; None closes the connection instead.
        count: Number of requests with the fault.
    """

    client_id: str
    api: ApiKey
    error: ErrorCode | None
    count: int = 1

    def __post_init__(self) -> None:
        """Refuse an answer that the proxy cannot produce.

        Raises:
            ConfigError: the API's response is more than an error code.
        """
        if self.error is not None and self.api not in _FAULTY:
            names = ", ".join(api.name for api in _FAULTY)
            raise ConfigError(f"cannot answer {self.api.name} with an error: one of {names}")


@dataclass(slots=True)
class _Link:
    """One client's connection and the one behind it to the broker."""

    number: int
    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    client_id: str | None = None
    in_flight: dict[int, RequestHeader] = field(default_factory=dict)
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        self.client.close()
        self.broker.close()


class RecordingProxy:
    """Forwards bytes in both directions and writes the frames of some APIs to a file.

    Args:
        listen: Host and port that clients connect to.
        upstream: Host and port of the broker.
        out: Receives the lines.
        apis: Numbers of the APIs to record.
        step: Name of the first step.
    """

    def __init__(
        self,
        listen: tuple[str, int],
        upstream: tuple[str, int],
        out: TextIO,
        *,
        apis: Iterable[int] = GROUP_APIS,
        step: str = "",
    ) -> None:
        self._listen = listen
        self._upstream = upstream
        self._out = out
        self._apis = frozenset(apis)
        self._step = step
        self._began_s: float | None = None
        self._seq = 0
        self._link_count = 0
        self._links: list[_Link] = []
        self._faults: list[Fault] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._server: asyncio.Server | None = None

    async def serve(self, started: threading.Event | None = None) -> None:
        """Listen until `stop` is called.

        Args:
            started: Set once clients can connect.

        Raises:
            OSError: the address is in use.
        """
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._server = await asyncio.start_server(self._accept, *self._listen)
        if started is not None:
            started.set()
        await self._stop.wait()
        self._server.close()
        for link in self._links:
            link.close()
        await asyncio.sleep(_TURN_S)

    @contextmanager
    def running(self) -> Iterator["RecordingProxy"]:
        """Yield the proxy, running in a thread of its own.

        Raises:
            ConfigError: the proxy cannot listen.
        """
        started = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self.serve(started)), daemon=True)
        thread.start()
        if not started.wait(_START_TIMEOUT_S):
            raise ConfigError(f"the proxy cannot listen on {self._listen}: is the port in use?")
        try:
            yield self
        finally:
            self.stop()
            thread.join(_START_TIMEOUT_S)

    # Steering; may be called from any thread.

    def stop(self) -> None:
        """Close every connection and end `serve`."""
        if self._stop is not None:
            self._soon(self._stop.set)

    def set_step(self, name: str) -> None:
        """Name the step from now on."""
        self._step = name

    def note(self, client_id: str, text: str) -> None:
        """Record an action of a client's application."""
        self._soon(self._write, "note", {"conn": 0, "client_id": client_id, "note": text})

    def add_fault(self, fault: Fault) -> None:
        """Inject a fault into the next requests of a client."""
        self._soon(self._faults.append, fault)

    def refuse(self) -> None:
        """Refuse new connections, as a machine without a broker does."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._listen_no_more(), self._loop).result()

    def accept(self) -> None:
        """Accept connections again after `refuse`."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._listen_again(), self._loop).result()

    async def _listen_no_more(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _listen_again(self) -> None:
        self._server = await asyncio.start_server(self._accept, *self._listen)

    def cut(self, client_id: str) -> None:
        """Close every connection of a client, as a broker that goes down does."""
        self._soon(self._cut, client_id)

    def _soon(self, action: Any, *arguments: object) -> None:  # noqa: ANN401 - any callable
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(action, *arguments)

    def _cut(self, client_id: str) -> None:
        for link in [link for link in self._links if link.client_id == client_id]:
            link.close()

    # Connections.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._link_count += 1
        number = self._link_count
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            self._write("refused", {"conn": number})
            writer.close()
            return
        except asyncio.CancelledError:
            writer.close()
            raise
        self._write("open", {"conn": number})
        link = _Link(number, writer, broker_writer)
        self._links.append(link)
        await asyncio.gather(
            self._pump_requests(link, reader), self._pump_responses(link, broker_reader)
        )
        self._links.remove(link)
        self._write("eof", {"conn": number, "client_id": link.client_id})

    async def _pump_requests(self, link: _Link, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _read_frame(reader)
                header = read_header(frame)
                link.client_id = header.client_id
                self._write_frame("req", link, header, frame)
                fault = self._fault_of(header)
                if fault is None:
                    link.in_flight[header.correlation_id] = header
                    await _write_bytes(link.broker, frame)
                elif fault.error is None:
                    break
                else:
                    await self._inject(link, header, fault.error)
        link.close()

    async def _pump_responses(self, link: _Link, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await _read_frame(reader)
                (correlation_id,) = _LENGTH.unpack(frame[: _LENGTH.size])
                header = link.in_flight.pop(correlation_id, None)
                if header is not None:
                    self._write_frame("resp", link, header, frame)
                await _write_bytes(link.client, frame)
                if not link.in_flight:
                    link.idle.set()
        link.idle.set()
        link.close()

    async def _inject(self, link: _Link, header: RequestHeader, error: ErrorCode) -> None:
        """Answer instead of the broker, after the connection's pending answers."""
        if link.in_flight:
            link.idle.clear()
            await link.idle.wait()
        frame = response_frame(
            ApiKey(header.api_key),
            header.api_version,
            header.correlation_id,
            {"errorCode": error.value},
        )
        self._write_frame("resp", link, header, frame, injected=True)
        await _write_bytes(link.client, frame)

    def _fault_of(self, header: RequestHeader) -> Fault | None:
        """Return the fault of this request; a used-up fault is removed."""
        for fault in self._faults:
            if (fault.client_id, fault.api) == (header.client_id, header.api_key):
                fault.count -= 1
                if fault.count == 0:
                    self._faults.remove(fault)
                return fault
        return None

    # Lines.

    def _write_frame(
        self,
        direction: str,
        link: _Link,
        header: RequestHeader,
        frame: bytes,
        *,
        injected: bool = False,
    ) -> None:
        if header.api_key not in self._apis:
            return
        columns: dict[str, object] = {
            "conn": link.number,
            "api_key": header.api_key,
            "api_version": header.api_version,
            "correlation_id": header.correlation_id,
            "client_id": header.client_id,
            "frame": frame.hex(),
        }
        if injected:
            columns["injected"] = True
        self._write(direction, columns)

    def _write(self, direction: str, columns: dict[str, object]) -> None:
        now_s = time.monotonic()
        if self._began_s is None:
            self._began_s = now_s
        line = {
            "seq": self._seq,
            "t_ms": round((now_s - self._began_s) * 1_000),
            "step": self._step,
            "conn": columns.pop("conn"),
            "dir": direction,
            **columns,
        }
        self._seq += 1
        self._out.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._out.flush()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)


async def _write_bytes(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(_LENGTH.pack(len(frame)) + frame)
    await writer.drain()


# The command line.


def address(text: str) -> tuple[str, int]:
    """Parse `host:port` as a pair.

    Raises:
        ConfigError: the text has another form.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{text!r} is no address: write host:port")
    return host, int(port)


def fault_from(words: list[str]) -> Fault:
    """Parse a fault from `CLIENT API ERROR [COUNT]`.

    Raises:
        ConfigError: a word is missing, or names no API or error.
    """
    try:
        client_id, api, error, *count = words
        return Fault(
            client_id,
            ApiKey[api],
            None if error == DISCONNECT else ErrorCode[error],
            int(count[0]) if count else 1,
        )
    except (KeyError, ValueError) as problem:
        raise ConfigError(
            f"fault {' '.join(words)}: CLIENT API ERROR [COUNT] ({problem})"
        ) from None


def steer(proxy: RecordingProxy, command: str) -> None:
    """Carry out one line of standard input.

    Raises:
        ConfigError: the line is no command.
    """
    match command.split():
        case ["step", name]:
            proxy.set_step(name)
        case ["note", client_id, *words]:
            proxy.note(client_id, " ".join(words))
        case ["fault", *words]:
            proxy.add_fault(fault_from(words))
        case ["cut", client_id]:
            proxy.cut(client_id)
        case ["refuse"]:
            proxy.refuse()
        case ["accept"]:
            proxy.accept()
        case []:
            pass
        case _:
            raise ConfigError(f"{command!r}: write step, note, fault, cut, refuse or accept")


def main(arguments: list[str] | None = None) -> None:
    """Record until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_proxy", description=__doc__)
    parser.add_argument("--listen", required=True, type=address, metavar="HOST:PORT")
    parser.add_argument("--upstream", required=True, type=address, metavar="HOST:PORT")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE")
    parser.add_argument("--step", default="", help="name of the first step")
    options = parser.parse_args(arguments)
    with options.out.open("w", encoding="utf-8") as out:
        proxy = RecordingProxy(options.listen, options.upstream, out, step=options.step)
        with proxy.running():
            for line in sys.stdin:
                try:
                    steer(proxy, line)
                except ConfigError as mistake:
                    sys.stderr.write(f"{mistake}\n")


if __name__ == "__main__":
    main()
