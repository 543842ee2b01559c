"""Leaves the three sources of one real run in a folder: broker log, request log, segments.

`python -m conformance.real_kafka.three_sources OUT` starts one broker of Kafka 4.x with its log
files on, plays `group_story` with Java clients, stops the broker and keeps what `ingest` reads:
`server.log`, `kafka-request.log` and the folders of `__consumer_offsets` under `kafka-logs`.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim_conformance.real_kafka import kafka
from coordinator_sim_conformance.real_kafka.group_story import PARTITIONS, GroupStory

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

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, _SETTINGS, kafka.BROKER_VERSION)
        self.jvm = (
            *kafka.JVM,
            f"-Dlog4j2.configurationFile={(kafka.HERE / 'log4j2.properties').resolve()}",
            f"-Dkafka.logs.dir={directory.resolve()}",
            # Times of text logs name no zone.
            "-Duser.timezone=UTC",
        )
        self.first_jars = (_log4j_jars(),)

    def _serves(self) -> bool:
        log = self.directory / SERVER_LOG
        return log.exists() and _STARTED in log.read_text(encoding="utf-8", errors="replace")


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
