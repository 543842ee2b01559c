"""Brokers of the releases before KRaft, each with a ZooKeeper of its own."""

import socket
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from coordinator_sim_conformance.real_kafka.kafka import (
    JavaServer,
    free_ports,
    jars_of,
    write_properties,
)

_HOST: Final = "127.0.0.1"
_ANSWER_TIMEOUT_S: Final = 1.0


def _listens(port: int) -> bool:
    """Whether a port of this machine accepts connections."""
    with socket.socket() as probe:
        probe.settimeout(_ANSWER_TIMEOUT_S)
        return probe.connect_ex((_HOST, port)) == 0


class ZooKeeper(JavaServer):
    """A ZooKeeper from the jars of a Kafka release, on a free port.

    Args:
        directory: Folder of its data, settings and log; created if absent.
        version: Version of Kafka.
    """

    def __init__(self, directory: Path, version: str) -> None:
        super().__init__(directory, "zookeeper.log")
        self._version = version
        self.port = free_ports()[0]

    def start(self) -> None:
        """Start it and wait until it accepts connections.

        Raises:
            DataError: the server did not start; the message holds the end of its log.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "zookeeper.properties"
        write_properties(
            settings,
            {
                "dataDir": str(self.directory.resolve()),
                "clientPort": str(self.port),
                "clientPortAddress": _HOST,
                "admin.enableServer": "false",
            },
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._boot(jars_of(self._version), main, settings)

    def _serves(self) -> bool:
        return _listens(self.port)


class ZooKeeperBroker(JavaServer):
    """A broker of a release before KRaft, with its ZooKeeper, on free ports of this machine.

    Args:
        directory: Folder of its data, settings and log; created if absent.
        version: Version of Kafka.
        properties: Further settings of `server.properties`.
    """

    def __init__(
        self, directory: Path, version: str, properties: dict[str, str] | None = None
    ) -> None:
        super().__init__(directory, "broker.log")
        self._version = version
        self._properties = properties or {}
        self._port = free_ports()[0]
        self._zookeeper = ZooKeeper(directory / "zookeeper", version)
        self._running = ExitStack()

    @property
    def bootstrap(self) -> str:
        """Address that clients connect to."""
        return f"{_HOST}:{self._port}"

    @property
    def zookeeper(self) -> str:
        """Address of its ZooKeeper, which keeps running when the broker alone is stopped."""
        return f"{_HOST}:{self._zookeeper.port}"

    def start(self) -> None:
        """Start both and wait until the broker accepts connections.

        Raises:
            DataError: one of them did not start; the message holds the end of its log.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "server.properties"
        write_properties(
            settings,
            {
                "broker.id": "1",
                "listeners": f"PLAINTEXT://{self.bootstrap}",
                "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
                "zookeeper.connect": self.zookeeper,
                "log.dirs": str((self.directory / "data").resolve()),
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.replication.factor": "1",
                **self._properties,
            },
        )
        self._boot(jars_of(self._version), "kafka.Kafka", settings)

    def _serves(self) -> bool:
        return _listens(self._port)

    def __enter__(self) -> Self:
        """Start the broker and its ZooKeeper, and return the broker."""
        self._running.enter_context(self._zookeeper)
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop both."""
        super().__exit__(kind, error, trace)
        self._running.close()
