"""One client's connection as it is watched: requests and replies matched, read and judged.

Without sockets: bytes in, bytes out. Whatever is not understood is passed on as it is.

Frames as bodies in Kafka's JSON, by kio; what it cannot read is not judged.

Cuts a byte stream into frames; large frames that no rule reads are relayed in pieces.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from kio.serial import entity_reader
from kio.serial.errors import SerialError
from msgspec import Struct

from coordinator_sim.errors import DataError, UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.codec.compiler import response_reader
from coordinator_sim_conformance.proxy import rules
from coordinator_sim_conformance.proxy.addresses import (
    REPLACED,
    UNREADABLE,
    Address,
    with_addresses,
)
from coordinator_sim_conformance.proxy.exchanges import Exchange, Flag, flag
from coordinator_sim_conformance.proxy.judging import WATCHED, Judge
from coordinator_sim_conformance.targets.target import MalformedAnswer
from coordinator_sim_conformance.wire.frames import answer_of
from coordinator_sim_conformance.wire.kio_bodies import Json, entity_type, number_of, to_json

LENGTH_BYTES: Final = 4
_LONGEST: Final = 1 << 28
"""Bytes of a frame; a length above is none of Kafka's, TLS for example."""


class Piece(Struct, frozen=True):
    """Bytes of a frame, with its length in front where it begins.

    Args:
        data: The bytes.
        head: The first bytes behind the length; empty where the frame began before.
        frame: The whole frame without its length, if it was wanted.
    """

    data: bytes
    head: bytes
    frame: bytes | None = None


class Frames:
    """Cuts what comes into frames.

    Args:
        head_bytes: How much of a frame is needed to know what it is.
        is_wanted: Whether a frame with that head is looked into, and comes whole; asked often.
    """

    def __init__(self, head_bytes: int, is_wanted: Callable[[bytes], bool]) -> None:
        self._head_bytes = head_bytes
        self._is_wanted = is_wanted
        self._held = bytearray()
        self._passing = 0

    def released(self) -> bytes:
        """Return the bytes of an unfinished frame, which are no longer held."""
        return self._taken(len(self._held))

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield what can go on.

        Raises:
            DataError: the bytes are no frames.
        """
        self._held += data
        while self._held:
            if self._passing:
                taken = self._taken(min(self._passing, len(self._held)))
                self._passing -= len(taken)
                yield Piece(taken, b"")
                continue
            if len(self._held) < LENGTH_BYTES + self._head_bytes:
                return
            length = int.from_bytes(self._held[:LENGTH_BYTES], "big", signed=True)
            if not self._head_bytes <= length <= _LONGEST:
                raise DataError(f"a frame of {length} bytes")
            head = bytes(self._held[LENGTH_BYTES : LENGTH_BYTES + self._head_bytes])
            if not self._is_wanted(head):
                self._passing = LENGTH_BYTES + length
                taken = self._taken(min(self._passing, len(self._held)))
                self._passing -= len(taken)
                yield Piece(taken, head)
            elif len(self._held) < LENGTH_BYTES + length:
                return
            else:
                taken = self._taken(LENGTH_BYTES + length)
                yield Piece(taken, head, taken[LENGTH_BYTES:])

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken


NAMES: Final = {number_of(name): name for name in WATCHED}
"""Number -> Kafka's name of the APIs that are judged."""
FIRST_VERSION: Final = {number_of("OffsetCommit"): 1, number_of("OffsetFetch"): 1}
"""Version 0 of these is about offsets outside the group's log."""


def read_request(api: str, version: int, frame: bytes) -> tuple[str, Json] | None:
    """Return client id and body of a request; None where kio cannot read it."""
    try:
        kind: Any = entity_type(api, version, "Request")
        header, start = entity_reader(kind.__header_schema__)(frame, 0)
        entity, _ = entity_reader(kind)(frame, start)
    except (UnsupportedVersion, SerialError, IndexError, ValueError, TypeError, OverflowError):
        return None
    return header.client_id or "", to_json(entity)


def read_reply(api: str, version: int, frame: bytes) -> Json | None:
    """Return the body of a reply; None where kio alone cannot read it.

    Raises:
        MalformedAnswer: it is no reply of that version, as two codecs say.
    """
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    try:
        return answer_of(api, version, frame, correlation_id=correlation_id)
    except UnsupportedVersion:
        return None
    except MalformedAnswer:
        try:
            response_reader(ApiKey(number_of(api)), version)(frame)
        except WireFormatError as broken:
            raise MalformedAnswer(f"{api} {version} is malformed: {broken}") from None
        return None


_HEAD: Final = struct.Struct(">hhi")
_SHORT: Final = struct.Struct(">h")
_CORRELATION_BYTES: Final = 4
_FLEXIBLE_PRODUCE: Final = 9
_TRANSACTIONAL_PRODUCE: Final = 3


class Pending(Struct):
    """A request without its reply; the exchange where it is judged."""

    api: int
    version: int
    correlation_id: int
    exchange: Exchange | None


class Connection:
    """Watches both directions of a connection.

    Args:
        number: Its number.
        judge: Judges the exchanges, of all connections.
        stand_in: Returns the proxy's address for a broker's.
        tell: Takes flags.
        remark: Takes what is not judged, and why, in a line.
    """

    def __init__(
        self,
        number: int,
        judge: Judge,
        stand_in: Callable[[Address], Address],
        tell: Callable[[Flag], None],
        remark: Callable[[str], None],
    ) -> None:
        self._number = number
        self._judge = judge
        self._stand_in = stand_in
        self._tell = tell
        self._remark = remark
        self._pending: deque[Pending] = deque()
        self._requests = Frames(_HEAD.size, _is_read)
        self._replies = Frames(_CORRELATION_BYTES, self._is_looked_into)
        self._is_watched = True

    def from_client(self, data: bytes) -> bytes:
        """Return what goes on to the broker."""
        if not self._is_watched:
            return self._requests.released() + data
        gone: list[bytes] = []
        try:
            for piece in self._requests.feed(data):
                gone.append(piece.data)
                if piece.head:
                    self._request(piece)
                if not self._is_watched:
                    break
        except DataError as problem:
            self._give_up(f"the client sends {problem}")
        if not self._is_watched:
            gone.append(self._requests.released())
        return b"".join(gone)

    def from_broker(self, data: bytes) -> bytes:
        """Return what goes on to the client."""
        if not self._is_watched:
            return self._replies.released() + data
        gone: list[bytes] = []
        try:
            for piece in self._replies.feed(data):
                gone.append(self._reply(piece) if piece.head else piece.data)
                if not self._is_watched:
                    break
        except DataError as problem:
            self._give_up(f"the broker sends {problem}")
        if not self._is_watched:
            gone.append(self._replies.released())
        return b"".join(gone)

    # -- inside ----------------------------------------------------------------------------

    def _give_up(self, why: str) -> None:
        self._is_watched = False
        self._pending.clear()
        self._remark(f"connection {self._number} is passed on unwatched: {why}")

    def _is_looked_into(self, _: bytes) -> bool:
        """Whether the reply that begins so is read or changed."""
        if not self._pending:
            return False
        first = self._pending[0]
        return first.exchange is not None or first.api in REPLACED

    def _request(self, piece: Piece) -> None:
        api, version, correlation_id = _HEAD.unpack(piece.head)
        if api == ApiKey.PRODUCE and piece.frame is not None and _acks(piece.frame, version) == 0:
            return
        if api == ApiKey.SASL_HANDSHAKE and version == 0:
            self._give_up("SaslHandshake 0, after which come no frames of Kafka's")
            return
        exchange = None if piece.frame is None else self._exchange(api, version, piece.frame)
        self._pending.append(Pending(api, version, correlation_id, exchange))
        if exchange is not None:
            self._judge.sent(exchange)

    def _exchange(self, api: int, version: int, frame: bytes) -> Exchange | None:
        name = NAMES.get(api)
        if name is None or version < FIRST_VERSION.get(api, 0):
            return None
        read = read_request(name, version, frame)
        if read is None:
            self._remark(f"a {name} {version} cannot be read, and is not judged")
            return None
        return Exchange(
            connection=self._number,
            api=name,
            version=version,
            request=read[1],
            sent=self._judge.place(),
            client_id=read[0],
            request_frame=frame,
        )

    def _reply(self, piece: Piece) -> bytes:
        (correlation_id,) = struct.unpack(">i", piece.head)
        if not self._pending or self._pending[0].correlation_id != correlation_id:
            self._out_of_order(correlation_id, piece)
            return piece.data
        pending = self._pending.popleft()
        if piece.frame is None:
            return piece.data
        if pending.exchange is not None:
            self._judged(pending.exchange, piece.frame)
            return piece.data
        try:
            changed = with_addresses(pending.api, pending.version, piece.frame, self._stand_in)
        except UNREADABLE as problem:
            self._remark(
                f"addresses in {ApiKey(pending.api).name} {pending.version} are left as they "
                f"are, so that clients may go past the proxy: {problem}"
            )
            return piece.data
        return len(changed).to_bytes(LENGTH_BYTES, "big") + changed

    def _judged(self, exchange: Exchange, frame: bytes) -> None:
        exchange.reply_frame = frame
        exchange.replied = self._judge.place()
        try:
            reply = read_reply(exchange.api, exchange.version, frame)
        except MalformedAnswer as broken:
            self._told(self._judge.wire(flag(rules.READABLE, exchange, str(broken))))
            return
        if reply is None:
            self._remark(f"a reply to {exchange.api} {exchange.version} cannot be read by kio")
            return
        exchange.reply = reply
        self._told(self._judge.replied(exchange))

    def _out_of_order(self, correlation_id: int, piece: Piece) -> None:
        waiting = self._pending[0] if self._pending else None
        exchange = waiting.exchange if waiting else None
        if exchange is None:
            api = ApiKey(waiting.api).name if waiting and waiting.api in set(ApiKey) else "none"
            exchange = Exchange(connection=self._number, api=api, version=0, request={}, sent=0)
        exchange.reply_frame = piece.frame or piece.data[LENGTH_BYTES:]
        wanted = str(waiting.correlation_id) if waiting else "none, no request is open"
        said = f"the reply has correlation id {correlation_id}, wanted is {wanted}"
        self._told(self._judge.wire(flag(rules.IN_ORDER, exchange, said)))
        self._give_up("its replies are out of order")

    def _told(self, flags: list[Flag]) -> None:
        for each in flags:
            self._tell(each)


def _is_read(head: bytes) -> bool:
    """Whether a request that begins so is read."""
    api, _, _ = _HEAD.unpack(head)
    return api in NAMES or api == ApiKey.PRODUCE


def _acks(frame: bytes, version: int) -> int:
    """Return how many acknowledgements a Produce asks for: with none it has no reply."""
    try:
        (length,) = _SHORT.unpack_from(frame, _HEAD.size)
        at = _HEAD.size + _SHORT.size + max(length, 0)
        if version >= _FLEXIBLE_PRODUCE:
            tags, at = _varint(frame, at)
            for _ in range(tags):
                _, at = _varint(frame, at)
                size, at = _varint(frame, at)
                at += size
            size, at = _varint(frame, at)
            at += max(size - 1, 0)
        elif version >= _TRANSACTIONAL_PRODUCE:
            (length,) = _SHORT.unpack_from(frame, at)
            at += _SHORT.size + max(length, 0)
        (acks,) = _SHORT.unpack_from(frame, at)
    except (struct.error, IndexError):
        return -1
    return int(acks)


def _varint(frame: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint, and where it ends."""
    value = shift = 0
    while True:
        byte = frame[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return value, at
