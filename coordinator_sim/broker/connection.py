"""One client's connection to one broker: frames in, answers out in the order of the requests.

Requests of a connection are handled one at a time, as in Kafka, which mutes the channel from a
request to its answer. Unlike Kafka, later requests are read and queued.

Source: kafka trunk, SocketServer.scala (Processor.processCompletedReceives, mute and unmute),
RequestContext.java, KafkaApis.handle.
"""

import struct
from collections import deque
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.broker.faults.fault_door import FaultDoor
from coordinator_sim.broker.pending_answer import Output, PendingAnswer
from coordinator_sim.broker.security.sasl import ANONYMOUS, Authentication
from coordinator_sim.errors import DataError, UnsupportedVersion, WireFormatError, described
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.messages.codec.compiler import request_reader, response_writer

MAX_WAITING_COUNT: Final = 1_000
MAX_WAITING_BYTES: Final = 1 << 20
"""Requests, and their bytes, that may wait for their turn before the driver stops reading."""

MAX_REQUEST_BYTES: Final = 104_857_600
"""`socket.request.max.bytes` where nothing is set."""

_START: Final = struct.Struct(">hhi")
_APIS: Final = {int(api): api for api in ApiKey}
_CONTROLLED_SHUTDOWN: Final = ApiKey.CONTROLLED_SHUTDOWN


class Connection:
    """A connection.

    Args:
        cluster: Behind it.
        broker_id: Whom the client reached.
        number: Of this connection, counted over the cluster's life.
        listener: Name of the listener.
        client_host: As Java prints an address, with a leading slash.
        output: The way out.

    Attributes:
        is_choked: Whether the client does not read its answers: what it sends waits. Set by the
            driver; `resume` ends it.
        principal: Who the client is. Whoever knows it by TLS puts it here; SASL does so itself.
    """

    __slots__ = (
        "_authentication",
        "_cluster",
        "_is_muted",
        "_is_throttled",
        "_max_request_bytes",
        "_output",
        "_overtaken",
        "_pending",
        "_token",
        "_waiting",
        "_waiting_bytes",
        "broker_id",
        "client_host",
        "is_choked",
        "listener",
        "number",
        "principal",
    )

    def __init__(
        self,
        cluster: Cluster,
        broker_id: int,
        *,
        number: int,
        listener: str,
        client_host: str,
        output: Output,
    ) -> None:
        self._authentication = cluster.security.authentication(listener, cluster.versions)
        self._cluster = cluster
        self._output = output
        self._overtaken: list[bytes] = []
        self._pending: PendingAnswer | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_muted = False
        self._is_throttled = False
        self._token = 0
        largest = cluster.configs.broker_value("socket.request.max.bytes", broker_id)
        self._max_request_bytes = largest if isinstance(largest, int) else MAX_REQUEST_BYTES
        self.is_choked = False
        self.broker_id = broker_id
        self.number = number
        self.listener = listener
        self.client_host = client_host
        self.principal = ANONYMOUS

    @property
    def is_known(self) -> bool:
        """Whether authentication is complete. Earlier frames may hold secrets."""
        return self._authentication is None or self._authentication.is_complete

    @property
    def max_frame_bytes(self) -> int:
        """Longest request in bytes; shorter until the client is authenticated."""
        if self._authentication is None or self._authentication.is_complete:
            return self._max_request_bytes
        return self._authentication.max_receive_bytes

    @property
    def is_full(self) -> bool:
        """Whether the queue of unhandled requests is at its limit, in number or in bytes."""
        return len(self._waiting) >= MAX_WAITING_COUNT or self._waiting_bytes >= MAX_WAITING_BYTES

    @property
    def is_working(self) -> bool:
        """Whether a request is taken and not answered, or no other is taken for a quota."""
        return self._is_muted

    def received(self, frame: bytes, now: Instants) -> None:
        """Take one request, a frame without its length; bytes that are none end the connection."""
        if self._is_muted or self.is_choked or self._waiting:
            self._waiting.append(frame)
            self._waiting_bytes += len(frame)
            return
        self._work_on(frame, now)
        if self._cluster.jobs.unmuted:
            self._cluster.go_on(now)

    def answered(self, frame: bytes | None) -> None:
        """The answer to the request at work has come; what waits behind it is next."""
        if frame is not None:
            self._output.write(len(frame).to_bytes(4, "big") + frame)
            if self._overtaken:
                self._release_overtaken()
        self._is_muted = self._is_throttled
        self._pending = None
        if self._waiting:
            self._cluster.has_more(self)

    def throttled(self, throttle_time_ms: int) -> None:
        """Stay muted after the answer, for so long from now on. Source: ThrottledChannel.java."""
        self._is_throttled = True
        at_ms = self._cluster.latest.wall_ms + throttle_time_ms
        self._cluster.scheduler.at_wall_ms(at_ms, self._throttling_done)

    def _throttling_done(self, _now: Instants) -> None:
        """Source: SocketServer.Processor.handleChannelMuteEvent, of THROTTLE_ENDED."""
        self._is_throttled = False
        self._is_muted = self._pending is not None
        if self._waiting:
            self._cluster.has_more(self)

    def overtaken(self, frame: bytes, within_ms: int) -> None:
        """Keep an answer until the next one is sent; see `Asker.overtaken`."""
        self._overtaken.append(frame)
        at_ms = self._cluster.latest.wall_ms + within_ms
        self._cluster.scheduler.at_wall_ms(at_ms, lambda _now: self._release(frame))
        self.answered(None)

    def _release(self, kept: bytes) -> None:
        """Send answers up to one that no other has overtaken in time."""
        if any(each is kept for each in self._overtaken):
            self._release_overtaken()

    def _release_overtaken(self) -> None:
        frames, self._overtaken = self._overtaken, []
        for frame in frames:
            self._output.write(len(frame).to_bytes(4, "big") + frame)

    def resume(self, now: Instants) -> None:
        """The client reads its answers again: work on what waits."""
        self.is_choked = False
        self._cluster.has_more(self)
        self._cluster.go_on(now)

    def work_on_next(self, now: Instants) -> None:
        """Work on the first request that waits; a broker that stands still does so at `resume`."""
        if not self._cluster.brokers.is_running(self.broker_id):
            return
        if self._waiting and not self._is_muted and not self.is_choked:
            frame = self._waiting.popleft()
            self._waiting_bytes -= len(frame)
            self._work_on(frame, now)

    def closed(self, now: Instants | None = None) -> None:
        """The client is gone: what waits is dropped. What is at work goes on without it.

        Args:
            now: When; None for the newest instant that the cluster has seen.
        """
        self._waiting.clear()
        self._overtaken.clear()
        self._waiting_bytes = 0
        self._cluster.forget(self._token)
        if self._pending is not None:
            self._pending.abandon()
            self._pending = None
        self._cluster.disconnected(self.number, now)

    def ended(self, reason: str) -> None:
        """End the connection, and drop what waits for its turn."""
        self._waiting.clear()
        self._overtaken.clear()
        self._waiting_bytes = 0
        self._output.close(reason)

    def _work_on(self, frame: bytes, now: Instants) -> None:
        """Work on a request; whatever goes wrong with it ends this connection and no other."""
        try:
            self._take(frame, now)
        except Exception as error:  # noqa: BLE001 - a bug here is not to reach other clients
            api_key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (0, 2))
            self._failed(api_key, version, error)

    def _failed(self, api_key: int, version: int, error: Exception) -> None:
        """End the connection: its request was none, or the cluster has a bug."""
        name = _APIS[api_key].name if api_key in _APIS else f"request of API {api_key}"
        if isinstance(error, (WireFormatError, UnsupportedVersion, DataError)):
            self.ended(f"a {name} of version {version} that does not parse: {error}")
        else:
            self.ended(f"a {name} of version {version} met a bug: {described(error)}")

    def _take(self, frame: bytes, now: Instants) -> None:
        authentication = self._authentication
        if authentication is not None:
            if authentication.takes(frame, now):
                self._authenticate(authentication, frame, now)
                return
            if authentication.has_expired(now):
                self.ended("a request after its session's end")
                return
        if len(frame) < _START.size:
            self.ended(f"a request of {len(frame)} bytes, at least {_START.size} are one")
            return
        api_key, version, correlation_id = _START.unpack_from(frame)
        api = _APIS.get(api_key)
        span = None if api is None else self._cluster.versions.ranges.get(api)
        if api is None or span is None:
            self.ended(f"a request of API {api_key}, which is not offered")
            return
        if api is _CONTROLLED_SHUTDOWN:
            # QUIRK: 0.10.2 offers version 1, and reads any: with a client id from 1 on.
            # Source: kafka 0.10.2, ControlledShutdownRequest.readFrom.
            version, span = min(max(version, 0), 1), (0, 1)
        pending = PendingAnswer(self, api, version, correlation_id, self._cluster.jobs)
        self._pending = pending
        self._is_muted = True
        if not span[0] <= version <= span[1]:
            self._refuse_version(pending, span)
            return
        client_id, request = request_reader(api, version)(frame)
        pending.request = request
        if self._cluster.faults.rules:
            self._pass_faults(pending, client_id, request, now)
        else:
            self._dispatch(pending, client_id, request, now)

    def _authenticate(self, authentication: Authentication, frame: bytes, now: Instants) -> None:
        """Go on finding out who the client is; a failure is told later, against guessing."""
        self._is_muted = True
        outcome = authentication.take(frame, now)
        failure = outcome.failure
        if failure is None:
            self.principal = authentication.principal
            self.answered(outcome.frame)
            return

        def end(_later: Instants) -> None:
            self._waiting.clear()
            self.answered(outcome.frame)
            self.ended(failure)

        if outcome.delay_ms:
            self._cluster.scheduler.at_wall_ms(now.wall_ms + outcome.delay_ms, end)
        else:
            end(now)

    def _dispatch(
        self, pending: PendingAnswer, client_id: str | None, request: Struct, now: Instants
    ) -> None:
        self._token = self._cluster.new_token()
        self._cluster.handle(self._call(pending, self._token, client_id, request, now), pending)

    def _pass_faults(
        self, pending: PendingAnswer, client_id: str | None, request: Struct, now: Instants
    ) -> None:
        """Ask the fault rules first."""

        def take(later: Instants) -> None:
            if self.broker_id not in self._cluster.brokers.living:
                return
            try:
                self._dispatch(pending, client_id, request, later)
            except Exception as error:  # noqa: BLE001 - as in `_work_on`: it may come later
                self._failed(pending.api, pending.version, error)

        call = self._call(pending, 0, client_id, request, now)
        FaultDoor(self._cluster, self._output, call, pending).pass_request(take)

    def _call(
        self,
        pending: PendingAnswer,
        token: int,
        client_id: str | None,
        request: Struct,
        now: Instants,
    ) -> Call[Struct]:
        context = RequestContext(
            token=token,
            api_version=pending.version,
            client_id=client_id or "",
            client_host=self.client_host,
            principal=self.principal,
            listener=self.listener,
        )
        return Call(
            broker_id=self.broker_id,
            api=pending.api,
            request=request,
            context=context,
            now=now,
            connection=self.number,
        )

    def _refuse_version(self, pending: PendingAnswer, span: tuple[int, int]) -> None:
        """ApiVersions is told what there is, in version 0; anything else ends the connection."""
        if pending.api is not ApiKey.API_VERSIONS:
            self.ended(
                f"a {pending.api.name} of version {pending.version}, "
                f"offered are {span[0]} to {span[1]}"
            )
            return
        data = self._cluster.versions.unsupported()
        self.answered(response_writer(ApiKey.API_VERSIONS, 0)(pending.correlation_id, data))
