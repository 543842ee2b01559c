"""The place of a workload in a process of its own: clients of confluent-kafka, threads, chance.

A thread of the workload blocks in place: the generators of these clients yield nothing, and give up
the lock of the workload's threads while librdkafka waits.
"""

import random
import socket
import uuid
from functools import partial
from typing import Final, TypeVar

from coordinator_sim.clock import Action
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.live.trogdor.confluent_admin import ConfluentAdmin
from coordinator_sim.live.trogdor.confluent_consumer import ConfluentConsumer
from coordinator_sim.live.trogdor.confluent_producer import ConfluentProducer
from coordinator_sim.live.trogdor.workload_place import Log, WorkloadPlace
from coordinator_sim.live.trogdor.workload_threads import now_ms
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Settings

T = TypeVar("T")

Address = tuple[str, int]

_MS_PER_S: Final = 1_000
_PLAIN: Final = "PLAINTEXT"


class ConfluentClients:
    """The place; made, run and interrupted by the main thread.

    Args:
        log: Takes lines for the operator.
    """

    def __init__(self, log: Log) -> None:
        self._place = WorkloadPlace(log)
        self._addresses: dict[str, list[Address]] = {}
        self._random = random.SystemRandom()

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return now_ms()

    def consumer(self, settings: Settings) -> ConfluentConsumer:
        """A new consumer.

        Raises:
            ClientFailed: the settings are refused.
        """
        return ConfluentConsumer(self._place, settings)

    def producer(self, settings: Settings) -> ConfluentProducer:
        """A new producer.

        Raises:
            ClientFailed: the settings are refused.
        """
        return ConfluentProducer(self._place, settings)

    def admin(self, settings: Settings) -> ConfluentAdmin:
        """A new admin client.

        Raises:
            ClientFailed: the settings are refused.
        """
        return ConfluentAdmin(self._place, settings)

    def connect(self, settings: Settings, timeout_ms: int) -> Blocking[bool]:
        """Open a connection to one of the bootstrap servers and close it.

        Raises:
            ClientFailed: the connection is to be encrypted or logged in to, or no server is known.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        protocol = str(settings.get("security.protocol", _PLAIN))
        if protocol.upper() != _PLAIN:
            raise ClientFailed(
                f"security.protocol is {protocol}: CONNECT opens plain connections only; give "
                f"{_PLAIN}, or the action FETCH_METADATA"
            )
        servers = self._resolved(str(settings["bootstrap.servers"]))
        address = servers[self.draw(len(servers))]
        connect = partial(_is_connected, address, timeout_ms / _MS_PER_S)
        return self._place.threads.outside(connect)

    def start(self, thread: Blocking[None]) -> None:
        """Run a thread of the workload."""
        self._place.threads.start(thread)

    def interrupt(self) -> None:
        """Stop every thread."""
        self._place.threads.interrupt()

    def draw(self, below: int) -> int:
        """A number from 0 to `below` - 1."""
        return self._random.randrange(below)

    def unique(self) -> str:
        """A random UUID."""
        return str(uuid.uuid4())

    # -- the main thread -----------------------------------------------------------------------

    def call(self, action: Action) -> None:
        """Do something while no thread of the workload runs."""
        self._place.threads.call(action)

    def run(self, work: Blocking[T]) -> T:
        """Run something to its end."""
        return self._place.threads.run(work)

    # -- inside --------------------------------------------------------------------------------

    def _resolved(self, servers: str) -> list[Address]:
        """The addresses of servers, looked up once.

        Raises:
            ClientFailed: there is none.
        """
        if servers not in self._addresses:
            found = [each for server in servers.split(",") for each in _looked_up(server.strip())]
            if not found:
                raise ClientFailed(
                    f"No resolvable bootstrap urls given in bootstrap.servers: {servers!r}"
                )
            self._addresses[servers] = found
        return self._addresses[servers]


def _looked_up(server: str) -> list[Address]:
    """The addresses of `host:port`, with or without a protocol; empty for a malformed one."""
    host, _, port = server.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return []
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, OverflowError, UnicodeError):
        return []
    return [(str(found[0][4][0]), int(port))]


def _is_connected(address: Address, timeout_s: float) -> bool:
    """Whether a connection is not refused in time."""
    try:
        socket.create_connection(address, timeout_s).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return True
