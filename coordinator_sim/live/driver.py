"""The loop around one port on a real network: connections, one alarm, effects in order.

`consumer` and `worker` handle the end of a poll, callbacks and a worker's effects. No group logic
is here.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol

from coordinator_sim.clients.contract import DrivenPort
from coordinator_sim.clients.effects import Closed, Connect, Disconnect, Send
from coordinator_sim.connect.effects import WorkerEffect
from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.live.connection import FrameSeen, InFlight
from coordinator_sim.live.links import Links
from coordinator_sim.live.story import MemberEvent, told_of
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Response

FIRST_CONTACT_S: Final = 10.0
"""Time from the start without a broker's answer after which the bootstrap counts as wrong."""

_MS_PER_S: Final = 1000
_EPOCH_NS: Final = time.time_ns() - time.monotonic_ns()


def now_ms() -> int:
    """Return milliseconds since 1970, on a clock that never runs backwards.

    Ports only need it never to run backwards; session keys carry the time since 1970.
    """
    return (_EPOCH_NS + time.monotonic_ns()) // 1_000_000


class Audience(Protocol):
    """Receives a member's events and frames."""

    def event(self, event: MemberEvent) -> None:
        """Handle an event for users."""
        ...

    def frame(self, frame: FrameSeen) -> None:
        """Handle a frame that was sent or received."""
        ...


class PortLoop(ABC):
    """One running port.

    Args:
        port: The port to drive.
        bootstrap: Brokers to ask first.
        client_id: Client id in requests.
        audience: Receives the events.
    """

    def __init__(
        self,
        port: DrivenPort[WorkerEffect],
        bootstrap: tuple[Node, ...],
        *,
        client_id: str,
        audience: Audience,
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
        """Run until closed.

        Raises:
            ConfigError: no broker of the bootstrap answered.
            UnsupportedVersion: a broker and the port have no common version of an API.
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
        """Cause that ended the port; None where it was asked to end."""

    @abstractmethod
    def stop(self) -> None:
        """Begin an orderly end; `run` returns when it is over. A second call changes nothing."""

    @abstractmethod
    def _start(self) -> None:
        """Start the port."""

    @abstractmethod
    def _carry_out(self, effect: WorkerEffect) -> None:
        """Carry out an effect that only this kind of port has."""

    async def _clean_up(self) -> None:  # noqa: B027 - most loops have nothing to give back
        """Release what the loop holds besides connections."""

    # LinksOwner.

    def connected(self, node_id: int) -> None:
        """Pass an open connection to the port."""
        self._was_connected = True
        host, port = self._links.address_of(node_id) or ("", 0)
        self._tell(
            "CONNECTED", f"connected to {host}:{port}", node_id=node_id, address=f"{host}:{port}"
        )
        self._broken.pop(node_id, None)
        self._turn(lambda: self._port.on_connected(node_id, now_ms()))

    def disconnected(self, node_id: int, reason: str) -> None:
        """Pass a lost connection to the port; repeated reasons are shown once."""
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
        """Pass a response to the port."""
        event = told_of(sent.request, response)
        if event is not None:
            self._audience.event(event)
        self._turn(lambda: self._port.on_response(sent.correlation_id, response, now_ms()))

    def surprised(self, node_id: int) -> None:
        """Pass on that an answer came out of its turn."""
        self._turn(lambda: self._port.on_unexpected_response(node_id, now_ms()))

    def seen(self, frame: FrameSeen) -> None:
        """Pass on a frame that was sent or received."""
        self._audience.frame(frame)

    # Effects and the alarm.

    def _turn(self, verb: Callable[[], tuple[WorkerEffect, ...]]) -> None:
        """Call a verb of the port and carry out its effects."""
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
        """Run an action for the loop; an exception ends `run`."""
        if self._ended.done():
            return
        try:
            action()
        except CoordinatorSimError as error:
            self._fail(error)

    def _soon(self, action: Callable[[], None], delay_s: float = 0.0) -> None:
        """Run an action after the present one."""
        self._loop.call_later(delay_s, self._guarded, action)

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)

    def _on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End `run` with an exception that escaped a callback: it is a bug."""
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
