"""Records real clients in named situations: boots a broker, plays each situation, keeps frames.

    python -m tools.record_clients librdkafka --out tests/unit/clients/recorded [SITUATION...]
    python -m tools.record_clients franz-go --out tests/unit/clients/recorded [SITUATION...]
    python -m tools.record_clients librdkafka-consumer --out tests/unit/clients/recorded
    python -m tools.record_clients streams --out tests/unit/clients/recorded

    python -m tools.record_clients java-share --out tests/unit/clients/recorded

`librdkafka-consumer` is librdkafka with `group.protocol=consumer`, `java-share` the share consumer
of Kafka's Java clients, `streams` Kafka Streams with `group.protocol=streams`; they have situations
of their own.

Needs Java and Maven for the broker; confluent-kafka, or Go for `tools/franz_go`. One file a
situation, `CLIENT-SITUATION.jsonl`, in the form of `record_proxy`.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.real_kafka.kafka import (
    BROKER_VERSION,
    Broker,
    free_ports,
    jars_of,
    java_command,
)
from coordinator_sim_conformance.real_kafka.streams import member_command
from tools.new_consumer_situations import OTHER_TOPIC
from tools.new_consumer_situations import SITUATIONS as NEW_CONSUMER_SITUATIONS
from tools.record_proxy import GROUP_APIS, Fault, RecordingProxy
from tools.recording_stage import BROKER, HERE, HOST, TOPIC, Stage
from tools.share_situations import SITUATIONS as SHARE_SITUATIONS
from tools.streams_situations import BROKER_SETTINGS as STREAMS_BROKER_SETTINGS
from tools.streams_situations import SITUATIONS as STREAMS_SITUATIONS

PARTITION_COUNT: Final = 4
RECORD_COUNT: Final = 5
"""Number of records in each partition, so that there is something to commit."""
SESSION_TIMEOUT_MS: Final = 4_000
HEARTBEAT_INTERVAL_MS: Final = 500
MAX_POLL_INTERVAL_MS: Final = 4_000
_CLIENT_SETTINGS: Final = {
    "session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "max.poll.interval.ms": str(MAX_POLL_INTERVAL_MS),
    "partition.assignment.strategy": "range",
}
_NEW_CONSUMER_SETTINGS: Final = {
    "group.protocol": "consumer",
    "max.poll.interval.ms": str(MAX_POLL_INTERVAL_MS),
}
_BROKER_SETTINGS: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.share.min.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "group.share.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    **STREAMS_BROKER_SETTINGS,
}
_END_TIMEOUT_S: Final = 15


# The situations.


def start(stage: Stage) -> None:
    """Let one member join an empty group, read all records, commit and send heartbeats."""
    stage.start("a")
    stage.wait(6.5)


def rejoin(stage: Stage) -> None:
    """Let a second member join, then leave."""
    stage.start("a")
    stage.wait(3)
    stage.proxy.set_step("joins")
    other = stage.start("b")
    stage.wait(3)
    stage.proxy.set_step("leaves")
    other.close()
    stage.wait(2)


def cooperative(stage: Stage) -> None:
    """Let a second member join and leave a group of the cooperative protocol."""
    strategy = {"partition_assignment_strategy": "cooperative-sticky"}
    stage.start("a", **strategy)
    stage.wait(3)
    stage.proxy.set_step("joins")
    other = stage.start("b", **strategy)
    stage.wait(4)
    stage.proxy.set_step("leaves")
    other.close()
    stage.wait(2)


def killed(stage: Stage) -> None:
    """Kill a second member, and let its session time out."""
    stage.start("a")
    stage.wait(2)
    other = stage.start("b")
    stage.wait(2.5)
    stage.proxy.set_step("kill")
    other.kill()
    stage.wait(6)


def close(stage: Stage) -> None:
    """Close a dynamic member."""
    member = stage.start("a")
    stage.wait(2.5)
    stage.proxy.set_step("close")
    member.close()


def static_close(stage: Stage) -> None:
    """Close a static member, and start it again within its session."""
    member = stage.start("a", group_instance_id="one")
    stage.wait(2.5)
    stage.proxy.set_step("close")
    member.close()
    stage.proxy.set_step("return")
    stage.start("a", group_instance_id="one")
    stage.wait(2)


def fenced(stage: Stage) -> None:
    """Let another process replace a living static member."""
    stage.start("a", group_instance_id="one")
    stage.wait(2.5)
    stage.proxy.set_step("replaced")
    stage.start("b", group_instance_id="one")
    stage.wait(4)


def slow_poll(stage: Stage) -> None:
    """Stop the application's polls for longer than allowed."""
    member = stage.start("a")
    stage.wait(2)
    stage.proxy.set_step("slow")
    member.tell("slow 6500")
    stage.wait(9.5)


def coordinator_moved(stage: Stage) -> None:
    """Refuse heartbeats with NOT_COORDINATOR, then leave them unanswered."""
    stage.start("a")
    stage.wait(2.25)
    stage.fault("a", ApiKey.HEARTBEAT, ErrorCode.NOT_COORDINATOR, "not-coordinator")
    stage.wait(2.5)
    stage.proxy.set_step("cut")
    stage.proxy.cut("a")
    stage.wait(3)


def broker_bounce(stage: Stage) -> None:
    """Stop and restart the only broker."""
    stage.start("a", session_timeout_ms="10000", max_poll_interval_ms="10000")
    stage.wait(2.25)
    stage.proxy.set_step("down")
    stage.proxy.refuse()
    stage.proxy.note(BROKER, "down")
    stage.broker.stop()
    stage.broker.start()
    stage.proxy.accept()
    stage.proxy.note(BROKER, "up")
    stage.proxy.set_step("up")
    stage.wait(8)


def refused(stage: Stage) -> None:
    """Refuse heartbeats with the errors that end a membership."""
    stage.start("a")
    for error in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION,
                  ErrorCode.UNKNOWN_MEMBER_ID):  # fmt: skip
        stage.wait(2.25)
        stage.fault("a", ApiKey.HEARTBEAT, error, error.name.lower())
    stage.wait(3)


def join_refused(stage: Stage) -> None:
    """Answer JoinGroup and SyncGroup with temporary errors."""
    for api, error in (
        (ApiKey.JOIN_GROUP, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ApiKey.JOIN_GROUP, ErrorCode.UNKNOWN_MEMBER_ID),
        (ApiKey.SYNC_GROUP, ErrorCode.REBALANCE_IN_PROGRESS),
        (ApiKey.SYNC_GROUP, ErrorCode.NOT_COORDINATOR),
    ):
        stage.proxy.add_fault(Fault("a", api, error))
    stage.start("a")
    stage.wait(6)


Situation = Callable[[Stage], None]
NEW_CONSUMER: Final = "librdkafka-consumer"
SHARE: Final = "java-share"
STREAMS: Final = "streams"
CLIENTS: Final = ("librdkafka", "franz-go", NEW_CONSUMER, SHARE, STREAMS)
_APIS_OF: Final = {
    SHARE: GROUP_APIS
    | {
        ApiKey.METADATA,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
    },
    STREAMS: frozenset({ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.FIND_COORDINATOR}),
}
"""Threads of Kafka Streams, not their membership, decide on commits and positions."""


def _by_name(*situations: Situation) -> dict[str, Situation]:
    return {situation.__name__.replace("_", "-"): situation for situation in situations}


SITUATIONS: Final = _by_name(
    start,
    rejoin,
    cooperative,
    killed,
    close,
    static_close,
    fenced,
    slow_poll,
    coordinator_moved,
    refused,
    join_refused,
    broker_bounce,
)
_SITUATIONS_OF: Final = {
    NEW_CONSUMER: _by_name(*NEW_CONSUMER_SITUATIONS),
    SHARE: _by_name(*SHARE_SITUATIONS),
    STREAMS: _by_name(*STREAMS_SITUATIONS),
}
_SETTINGS_OF: Final = {
    NEW_CONSUMER: _NEW_CONSUMER_SETTINGS,
    SHARE: {"max.poll.interval.ms": str(MAX_POLL_INTERVAL_MS), "enable.metrics.push": "false"},
    STREAMS: {},
}


def situations_of(client: str) -> dict[str, Situation]:
    """Return the situations of a client by name."""
    return _SITUATIONS_OF.get(client, SITUATIONS)


def program_of(client: str, directory: Path) -> list[str]:
    """Return the command line of a client's program; franz-go's is built first.

    Raises:
        ConfigError: the client is unknown, or Go cannot build it.
    """
    if client in ("librdkafka", NEW_CONSUMER):
        return [sys.executable, "-m", "tools.librdkafka_member"]
    if client == "franz-go":
        program = directory / "franz_go"
        built = subprocess.run(  # noqa: S603 - our own command line
            ["go", "build", "-o", str(program), "."],  # noqa: S607 - Go of the path
            cwd=HERE / "franz_go",
            check=False,
        )
        if built.returncode:
            raise ConfigError("go build failed in tools/franz_go: is Go 1.26 on the path?")
        return [str(program)]
    if client == SHARE:
        jars = f"{jars_of(BROKER_VERSION)}/*"
        subprocess.run(  # noqa: S603 - our own command line
            ["javac", "-cp", jars, "-d", str(directory), str(HERE / "ShareMember.java")],  # noqa: S607
            check=True,
        )
        command = java_command(BROKER_VERSION, "ShareMember")
        place = command.index("-cp") + 1
        command[place] = f"{command[place]}:{directory}"
        return command
    if client == STREAMS:
        return member_command(BROKER_VERSION, directory)
    raise ConfigError(f"client {client!r}: must be one of {', '.join(CLIENTS)}")


def record(client: str, names: list[str], out: Path) -> None:
    """Play the situations, each into a file of its own."""
    out.mkdir(parents=True, exist_ok=True)
    situations = situations_of(client)
    settings = _SETTINGS_OF.get(client, _CLIENT_SETTINGS)
    apis = _APIS_OF.get(client, GROUP_APIS | {ApiKey.METADATA})
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = program_of(client, directory)
        port = free_ports()[0]
        advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
        broker = stack.enter_context(Broker(directory / "broker", _BROKER_SETTINGS | advertised))
        upstream = (HOST, int(broker.bootstrap.rpartition(":")[2]))
        with RecordingProxy((HOST, port), upstream, io.StringIO()).running():
            _create_topics(f"{HOST}:{port}")
        for name in names:
            with (out / f"{client}-{name}.jsonl").open("w", encoding="utf-8") as lines:
                proxy = RecordingProxy((HOST, port), upstream, lines, apis=apis, step=name)
                with proxy.running():
                    stage = Stage(command, broker, proxy, port, settings)
                    stage.group_id = f"{client}-{name}"
                    try:
                        situations[name](stage)
                    finally:
                        stage.end()
            sys.stdout.write(f"{name}\n")
            sys.stdout.flush()


def _create_topics(bootstrap: str) -> None:
    """Create the topics with their records; a first group creates the offsets topic."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = (TOPIC, OTHER_TOPIC)
    created = admin.create_topics(
        [*(NewTopic(topic, PARTITION_COUNT, 1) for topic in topics), NewTopic("growing", 2, 1)]
    )
    for each in created.values():
        each.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(PARTITION_COUNT * RECORD_COUNT):
        for topic in topics:
            producer.produce(topic, b"record", partition=number % PARTITION_COUNT)
    producer.flush()
    first = Consumer({"bootstrap.servers": bootstrap, "group.id": "first"})
    first.subscribe([TOPIC])
    deadline_s = time.monotonic() + _END_TIMEOUT_S
    while not first.assignment() and time.monotonic() < deadline_s:
        first.poll(0.1)
    first.close()


def main(arguments: list[str] | None = None) -> None:
    """Record the situations that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_clients", description=__doc__)
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("situations", nargs="*", metavar="SITUATION", help="default: all")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    options = parser.parse_intermixed_args(arguments)
    known = situations_of(options.client)
    unknown = [name for name in options.situations if name not in known]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    record(options.client, options.situations or list(known), options.out)


if __name__ == "__main__":
    main()
