"""Leaves the three sources of one real run in a folder: broker log, request log, segments.

`python -m conformance.real_kafka.three_sources OUT` starts one broker of Kafka 4.x with its log
files on, plays a small story with Java clients, stops the broker and keeps what `ingest` reads:
`server.log`, `kafka-request.log` and the folders of `__consumer_offsets` under `kafka-logs`.

A small story of two consumer groups, played by Java's consumers on a real broker.

Members join, one leaves, one dies and its session expires, all are deployed anew one by one; in the
second group a static member bounces. All of them read one topic and commit what they read.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Struct

from coordinator_sim.errors import ConfigError, CoordinatorSimError, DataError
from coordinator_sim_conformance.real_kafka import kafka
from coordinator_sim_conformance.real_kafka.kafka import (
    TOOLS_VERSION,
    java_command,
    write_properties,
)

TOPIC: Final = "orders"
PARTITIONS: Final = 6
"""Number of partitions of `TOPIC`: the broker's `num.partitions`."""
DYNAMIC_GROUP: Final = "orders-app"
STATIC_GROUP: Final = "billing-app"
SESSION_MS: Final = 4_000
"""Session timeout of dynamic members: short, as one of them dies."""
STATIC_SESSION_MS: Final = 30_000
"""Session timeout of static members: longer than the restart of a JVM."""

_PATIENCE_S: Final = 120
_POLL_S: Final = 0.1
_READING_S: Final = 1.0
"""How long the members of a settled group read before the next step."""
_RECORDS_PER_S: Final = 20
_KEYS: Final = 100
_PACKAGE: Final = "org.apache.kafka.tools"
_RANGE: Final = "org.apache.kafka.clients.consumer.RangeAssignor"


class _Tool:
    """A tool in a JVM that prints a line of JSON for everything that happens to it."""

    def __init__(self, main: str, options: Iterable[str], log: Path) -> None:
        self._log = log
        command = java_command(TOOLS_VERSION, f"{_PACKAGE}.{main}", *options)
        with log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def rows(self) -> list[dict[str, Any]]:
        """Return what it has printed by now."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end of the process."""
        self._process.send_signal(number)
        self._process.wait(_PATIENCE_S)

    def check(self) -> None:
        """Refuse to wait for a process that has ended.

        Raises:
            DataError: it has; the message holds the end of what it printed.
        """
        if self._process.poll() is not None:
            text = self._log.read_text(encoding="utf-8", errors="replace")
            raise DataError(f"{self._log.stem} ended by itself: {text.strip()[-500:]}")

    def kill(self) -> None:
        """End it whatever state it is in."""
        self._process.kill()
        self._process.wait()


class _Member(_Tool):
    """A consumer of one of the groups."""

    @property
    def owned(self) -> int:
        """How many partitions its newest assignment has."""
        owned = 0
        for row in self.rows():
            if row["name"] == "partitions_assigned":
                owned = len(row["partitions"])
            elif row["name"] == "partitions_revoked":
                owned = 0
        return owned

    @property
    def has_committed(self) -> bool:
        """Whether one of its commits succeeded."""
        return any(row["name"] == "offsets_committed" and row["success"] for row in self.rows())


class GroupStory:
    """The story, to be used as a context: whatever it started ends with it.

    Args:
        bootstrap: Address of the broker.
        folder: Folder for the settings and the output of the clients.
        tell: Told each step as it begins.
    """

    def __init__(self, bootstrap: str, folder: Path, tell: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._tell = tell
        self._members: dict[str, dict[str, _Member]] = {DYNAMIC_GROUP: {}, STATIC_GROUP: {}}
        self._started: list[_Tool] = []

    def __enter__(self) -> Self:
        """Return the story."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill what still runs."""
        for each in self._started:
            each.kill()

    def play(self) -> None:
        """Play it from the first record to the last member's end.

        Raises:
            DataError: a client ended by itself, or a group did not settle.
        """
        self._tell("records are written to orders, all the time")
        self._produce()
        for name in ("consumer-a", "consumer-b", "consumer-c"):
            self._tell(f"{DYNAMIC_GROUP}: {name} joins")
            self._join(DYNAMIC_GROUP, name)
        self._tell(f"{DYNAMIC_GROUP}: consumer-b leaves")
        self._leave(DYNAMIC_GROUP, "consumer-b", signal.SIGTERM)
        self._tell(f"{DYNAMIC_GROUP}: consumer-c is killed; its session lasts {SESSION_MS} ms")
        self._leave(DYNAMIC_GROUP, "consumer-c", signal.SIGKILL)
        self._join(DYNAMIC_GROUP, "consumer-d")
        for name in ("consumer-a", "consumer-d"):
            self._tell(f"{DYNAMIC_GROUP}: {name} is deployed anew")
            self._leave(DYNAMIC_GROUP, name, signal.SIGTERM)
            self._join(DYNAMIC_GROUP, name)
        for name in ("biller-1", "biller-2"):
            self._tell(f"{STATIC_GROUP}: {name} joins as a static member")
            self._join(STATIC_GROUP, name, name)
        self._tell(f"{STATIC_GROUP}: biller-2 bounces")
        self._leave(STATIC_GROUP, "biller-2", signal.SIGTERM, settles=False)
        self._join(STATIC_GROUP, "biller-2", "biller-2")
        self._tell("every member ends")
        for group_id, members in self._members.items():
            for name in list(members):
                self._leave(group_id, name, signal.SIGTERM)

    def _produce(self) -> None:
        options = (
            *("--bootstrap-server", self._bootstrap, "--topic", TOPIC),
            *("--max-messages", "-1", "--throughput", str(_RECORDS_PER_S)),
            # Records without keys fill one partition for a while; these go to all of them.
            *("--repeating-keys", str(_KEYS)),
        )
        producer = _Tool("VerifiableProducer", options, self._folder / "producer.out")
        self._started.append(producer)
        self._await(
            lambda: any(row["name"] == "producer_send_success" for row in producer.rows()),
            "the first record",
            [producer],
        )

    def _join(self, group_id: str, name: str, instance_id: str | None = None) -> None:
        settings = self._folder / f"{name}.properties"
        write_properties(settings, {"client.id": name, "heartbeat.interval.ms": "500"})
        session_ms = SESSION_MS if instance_id is None else STATIC_SESSION_MS
        options = [
            *("--bootstrap-server", self._bootstrap, "--group-id", group_id, "--topic", TOPIC),
            *("--session-timeout", str(session_ms), "--group-protocol", "classic"),
            *("--assignment-strategy", _RANGE, "--reset-policy", "earliest"),
            *("--command-config", str(settings)),
        ]
        if instance_id is not None:
            options += ["--group-instance-id", instance_id]
        log = self._folder / f"{name}-{len(self._started)}.out"
        member = _Member("VerifiableConsumer", options, log)
        self._started.append(member)
        self._members[group_id][name] = member
        self._settle(group_id)

    def _leave(
        self, group_id: str, name: str, number: signal.Signals, *, settles: bool = True
    ) -> None:
        """End a member; a static group keeps its partitions, so nothing is to be waited for."""
        members = self._members[group_id]
        members.pop(name).end(number)
        if members and settles and group_id == DYNAMIC_GROUP:
            self._settle(group_id)

    def _settle(self, group_id: str) -> None:
        """Wait until every member has its share, and let them read for a while."""
        members = list(self._members[group_id].values())

        def is_settled() -> bool:
            owned = [member.owned for member in members]
            return sum(owned) == PARTITIONS and max(owned) - min(owned) <= 1

        self._await(is_settled, f"{group_id} to settle", members)
        time.sleep(_READING_S)
        self._await(
            lambda: all(member.has_committed for member in members),
            f"commits of {group_id}",
            members,
        )

    @staticmethod
    def _await(condition: Callable[[], bool], what: str, tools: Iterable[_Tool]) -> None:
        deadline_s = time.monotonic() + _PATIENCE_S
        while not condition():
            for each in tools:
                each.check()
            if time.monotonic() > deadline_s:
                raise DataError(f"waited {_PATIENCE_S} s in vain for {what}")
            time.sleep(_POLL_S)


SERVER_LOG: Final = "server.log"
REQUEST_LOG: Final = "kafka-request.log"
LOG_DIR: Final = "kafka-logs"
OFFSETS_PARTITIONS: Final = 4
"""Number of partitions of `__consumer_offsets`; few, for a readable folder."""

_SETTINGS: Final = {
    "num.partitions": str(PARTITIONS),
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "1000",
}
_STARTED: Final = "Kafka Server started"
_EXIT_FAILED: Final = 1
_EXIT_USAGE: Final = 2


class Sources(Struct, frozen=True):
    """The three sources of one run.

    Args:
        server_log: The broker's log.
        request_log: Its request log, one JSON object a request.
        log_dir: Folder of the folders of `__consumer_offsets`.
    """

    server_log: Path
    request_log: Path
    log_dir: Path


class LoggingBroker(kafka.Broker):
    """A broker of 4.x that writes its log and its request log, as `log4j2.properties` says."""

    def __init__(self, directory: Path, properties: dict[str, str] = _SETTINGS) -> None:
        super().__init__(directory, properties, kafka.BROKER_VERSION)
        self._starts = 0
        self.jvm = (
            *kafka.JVM,
            f"-Dlog4j2.configurationFile={(kafka.HERE / 'log4j2.properties').resolve()}",
            f"-Dkafka.logs.dir={directory.resolve()}",
            # Times of text logs name no zone.
            "-Duser.timezone=UTC",
        )
        self.first_jars = (_log4j_jars(),)

    def start(self) -> None:
        """Start it, and go on with the log of an earlier start."""
        self._starts = self._started_count()
        super().start()

    def _serves(self) -> bool:
        return self._started_count() > self._starts

    def _started_count(self) -> int:
        log = self.directory / SERVER_LOG
        return log.read_text("utf-8", "replace").count(_STARTED) if log.exists() else 0


def leave_sources(out: Path, tell: Callable[[str], None]) -> Sources:
    """Play the story on a real broker and keep its three sources.

    Args:
        out: Folder for the sources; created, or empty.
        tell: Told each step as it begins.

    Raises:
        ConfigError: `out` holds something.
        DataError: the broker or a client failed.
        MissingDependencyError: Java or Maven is missing, or Maven cannot resolve the jars.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out}: is no empty folder; name a new one for the sources")
    with TemporaryDirectory(prefix="three-sources-") as scratch:
        folder = Path(scratch)
        broker = LoggingBroker(folder / "broker")
        tell(f"a broker of Kafka {kafka.BROKER_VERSION} starts")
        with broker, GroupStory(broker.bootstrap, folder, tell) as story:
            story.play()
        return _kept(broker, out)


def _kept(broker: kafka.Broker, out: Path) -> Sources:
    """Copy what a stopped broker leaves."""
    out.mkdir(parents=True, exist_ok=True)
    sources = Sources(out / SERVER_LOG, out / REQUEST_LOG, out / LOG_DIR)
    shutil.copy(broker.directory / SERVER_LOG, sources.server_log)
    shutil.copy(broker.directory / REQUEST_LOG, sources.request_log)
    for partition in sorted(broker.data.glob("__consumer_offsets-*")):
        shutil.copytree(partition, sources.log_dir / partition.name)
    return sources


def _log4j_jars() -> Path:
    """Return the folder with Log4j's binding to slf4j, resolved by Maven on first use."""
    lib = Path(os.environ.get(kafka.JARS_VARIABLE, kafka.HERE / "target")) / "log4j2" / "lib"
    if not any(lib.glob("log4j-slf4j-impl-*.jar")):
        options = ("-Plog4j2", "-DincludeArtifactIds=log4j-slf4j-impl")
        kafka.resolve_jars(kafka.BROKER_VERSION, lib, *options)
    return lib


def main(arguments: list[str]) -> int:
    """Leave the sources in the folder that the only argument names; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\nusage: python -m conformance.real_kafka.three_sources OUT\n")
        return _EXIT_USAGE
    out = Path(arguments[0])
    try:
        leave_sources(out, lambda step: print(step, flush=True))  # noqa: T201 - a command
    except CoordinatorSimError as error:
        sys.stderr.write(f"error: {error}\n")
        return _EXIT_FAILED
    names = " ".join(str(out / name) for name in (SERVER_LOG, REQUEST_LOG, LOG_DIR))
    print(f"next: coordinator-sim ingest {names} --out incident")  # noqa: T201 - a command
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
