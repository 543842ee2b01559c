"""The loop around one port on a real network: connections, one alarm, effects in order.

What the application does with a poll's end, a callback or a worker's wishes is in `consumer` and
`worker`. No group logic is here.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol

from coordinator_sim.clients.effects import Closed, Connect, Disconnect, Send
from coordinator_sim.connect.effects import WorkerEffect
from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.live.connection import FrameSeen, InFlight
from coordinator_sim.live.links import Links
from coordinator_sim.live.story import MemberEvent, told_of
from coordinator_sim.messages.requests import Response
from coordinator_sim.protocol.cluster_view import Node

FIRST_CONTACT_S: Final = 10.0
"""A bootstrap of which no broker has answered so long after the start is taken for a mistake."""

_MS_PER_S: Final = 1000
_EPOCH_NS: Final = time.time_ns() - time.monotonic_ns()


def now_ms() -> int:
    """The present instant in milliseconds since 1970, on a clock that never runs backwards.

    Ports only need the second; a worker's session keys carry the instant of their creation.
    """
    return (_EPOCH_NS + time.monotonic_ns()) // 1_000_000


class LinkedPort(Protocol):
    """What the loop needs of a port: a consumer's, or a whole Connect worker."""

    def expire(self, now_ms: int) -> tuple[WorkerEffect, ...]:
        """Fire every deadline up to now."""
        ...

    def on_connected(self, node_id: int, now_ms: int) -> tuple[WorkerEffect, ...]:
        """A connection that the port asked for is open."""
        ...

    def on_disconnected(self, node_id: int, now_ms: int) -> tuple[WorkerEffect, ...]:
        """A connection is gone, or could not be opened."""
        ...

    def on_response(
        self, correlation_id: int, response: Response, now_ms: int
    ) -> tuple[WorkerEffect, ...]:
        """A response arrived."""
        ...

    def next_deadline_ms(self) -> int | None:
        """The one alarm to arm."""
        ...


class Audience(Protocol):
    """Who is told what a member does."""

    def event(self, event: MemberEvent) -> None:
        """Something happened that a user wants to know."""
        ...

    def frame(self, frame: FrameSeen) -> None:
        """A frame went over a connection."""
        ...


class PortLoop(ABC):
    """One running port.

    Args:
        port: What decides.
        bootstrap: Brokers to begin with.
        client_id: What brokers call this client.
        audience: Who is told.
    """

    def __init__(
        self, port: LinkedPort, bootstrap: tuple[Node, ...], *, client_id: str, audience: Audience
    ) -> None:
        self._port = port
        self._bootstrap = bootstrap
        self._audience = audience
        self._links = Links(bootstrap, client_id=client_id, owner=self)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._alarm: asyncio.TimerHandle | None = None
        self._was_connected = False
        self._broken: dict[int, str] = {}

    async def run(self) -> None:
        """Live until closed.

        Raises:
            ConfigError: no broker of the bootstrap answered.
            UnsupportedVersion: a broker and the port have no version of an API in common.
        """
        self._loop.set_exception_handler(self._on_bug)
        contact = self._loop.call_later(FIRST_CONTACT_S, self._require_contact)
        try:
            self._guarded(self._start)
            await self._ended
        finally:
            contact.cancel()
            self._disarm()
            self._links.close()
            await self._clean_up()

    @property
    @abstractmethod
    def fatal_error(self) -> str | None:
        """What ended the port; None where it ended because it was asked to."""

    @abstractmethod
    def stop(self) -> None:
        """Begin an orderly end; `run` returns when it is over. A second call changes nothing."""

    @abstractmethod
    def _start(self) -> None:
        """Do the first thing."""

    @abstractmethod
    def _carry_out(self, effect: WorkerEffect) -> None:
        """Do what only this kind of port asks for."""

    async def _clean_up(self) -> None:  # noqa: B027 - most loops have nothing to give back
        """Give back what the loop holds besides connections."""

    # LinksOwner.

    def connected(self, node_id: int) -> None:
        """Tell the port."""
        self._was_connected = True
        host, port = self._links.address_of(node_id) or ("", 0)
        self._tell(
            "CONNECTED", f"connected to {host}:{port}", node_id=node_id, address=f"{host}:{port}"
        )
        self._broken.pop(node_id, None)
        self._turn(lambda: self._port.on_connected(node_id, now_ms()))

    def disconnected(self, node_id: int, reason: str) -> None:
        """Tell the port; people hear of the same reason once in a row."""
        if self._broken.get(node_id) != reason:
            self._broken[node_id] = reason
            host, port = self._links.address_of(node_id) or ("", 0)
            self._tell(
                "DISCONNECTED",
                f"no connection to {host}:{port}: {reason}",
                node_id=node_id,
                reason=reason,
            )
        self._turn(lambda: self._port.on_disconnected(node_id, now_ms()))

    def received(self, sent: InFlight, response: Response) -> None:
        """Tell the port."""
        event = told_of(sent.request, response)
        if event is not None:
            self._audience.event(event)
        self._turn(lambda: self._port.on_response(sent.correlation_id, response, now_ms()))

    def seen(self, frame: FrameSeen) -> None:
        """Pass on what went over a connection."""
        self._audience.frame(frame)

    # Effects and the alarm.

    def _turn(self, verb: Callable[[], tuple[WorkerEffect, ...]]) -> None:
        """Call a verb of the port and carry out what it asks for."""
        self._guarded(lambda: self._run(verb()))

    def _run(self, effects: tuple[WorkerEffect, ...]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self._links.send(effect)
                case Connect(node_id=node_id):
                    self._links.connect(node_id)
                case Disconnect(node_id=node_id):
                    self._links.disconnect(node_id)
                case Closed():
                    self._end()
                case _:
                    self._carry_out(effect)
        self._arm()

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do something on behalf of the loop; what it raises ends `run`."""
        if self._ended.done():
            return
        try:
            action()
        except CoordinatorSimError as error:
            self._fail(error)

    def _soon(self, action: Callable[[], None], delay_s: float = 0.0) -> None:
        """Do something after what is being done now."""
        self._loop.call_later(delay_s, self._guarded, action)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)

    def _on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What escapes a callback is a bug, and `run` raises it."""
        error = context.get("exception")
        if isinstance(error, Exception) and not self._ended.done():
            self._fail(error)
        else:
            loop.default_exception_handler(context)

    def _arm(self) -> None:
        self._disarm()
        deadline_ms = None if self._ended.done() else self._port.next_deadline_ms()
        if deadline_ms is not None:
            delay_s = max(0, deadline_ms - now_ms()) / _MS_PER_S
            self._alarm = self._loop.call_later(delay_s, self._on_alarm)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _on_alarm(self) -> None:
        self._turn(lambda: self._port.expire(now_ms()))

    def _require_contact(self) -> None:
        if not self._was_connected:
            asked = ", ".join(f"{node.host}:{node.port}" for node in self._bootstrap)
            why = next(iter(self._broken.values()), "no answer")
            self._fail(
                ConfigError(
                    f"no broker answered at {asked} within {FIRST_CONTACT_S:.0f} s ({why}): "
                    "check --bootstrap"
                )
            )

    def _tell(self, kind: str, text: str, **details: object) -> None:
        self._audience.event(MemberEvent(kind=kind, text=text, details=details))
