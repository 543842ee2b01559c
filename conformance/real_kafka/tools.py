"""Kafka's command-line tools, many calls in one JVM."""

import subprocess
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.real_kafka.kafka import HERE, TOOLS_VERSION, java_command

_SEPARATOR: Final = "\x1f"
_NEWLINE: Final = "\x1e"
_STOP_TIMEOUT_S: Final = 20

TOOLS: Final = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "all-groups": "org.apache.kafka.tools.GroupsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "offsets": "org.apache.kafka.tools.GetOffsetShell",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "produce": "org.apache.kafka.tools.ConsoleProducer",
    "consume": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "share-consume": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}
"""Main class of each tool."""


class Said(Struct, frozen=True):
    """Result of a tool.

    Args:
        status: Exit status.
        lines: Lines printed to both streams, without empty lines.
    """

    status: int
    lines: tuple[str, ...]


class Tools:
    """The tools of the newest release that publishes them, to be used as a context.

    Args:
        bootstrap: Addresses of the brokers.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        command = java_command(TOOLS_VERSION, str(HERE / "ToolRunner.java"))
        self._process = subprocess.Popen(  # noqa: S603 - our own command line
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        """Start the tools and return them."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the JVM."""
        if error is not None:
            self._process.kill()
        self._process.communicate(timeout=_STOP_TIMEOUT_S)

    def run(self, tool: str, *arguments: str, text: str = "") -> Said:
        """Run a tool to its end.

        Args:
            tool: A key of TOOLS.
            arguments: Arguments of the tool, without the brokers.
            text: Standard input of the tool.

        Raises:
            DataError: the JVM has ended.
        """
        given = ("--bootstrap-server", self._bootstrap, *arguments)
        if tool == "cluster":
            given = (*arguments, *given[:2])
        call = _SEPARATOR.join((TOOLS[tool], text.replace("\n", _NEWLINE), *given))
        if self._process.stdin is None or self._process.stdout is None:
            raise DataError("the tools have no pipes")
        self._process.stdin.write(f"{call}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_SEPARATOR):
                return Said(int(line[1:]), tuple(lines))
            if line.strip():
                lines.append(line.rstrip())
        raise DataError(f"the tools ended during {tool}: {lines}")
