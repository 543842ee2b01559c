"""Records real clients in named situations: boots a broker, plays each situation, keeps frames.

    python -m tools.record_clients librdkafka --out tests/unit/clients/recorded [SITUATION...]
    python -m tools.record_clients franz-go --out tests/unit/clients/recorded [SITUATION...]

Needs Java and Maven for the broker; confluent-kafka, or Go for `tools/franz_go`. One file a
situation, `CLIENT-SITUATION.jsonl`, in the form of `record_proxy`.
"""

import argparse
import io
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.real_kafka.kafka import Broker, free_ports
from tools.record_proxy import GROUP_APIS, Fault, RecordingProxy

HERE: Final = Path(__file__).parent
TOPIC: Final = "orders"
PARTITION_COUNT: Final = 4
RECORD_COUNT: Final = 5
"""Number of records in each partition, so that there is something to commit."""
SESSION_TIMEOUT_MS: Final = 4_000
HEARTBEAT_INTERVAL_MS: Final = 500
MAX_POLL_INTERVAL_MS: Final = 4_000
_HOST: Final = "127.0.0.1"
_CLIENT_SETTINGS: Final = {
    "session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "max.poll.interval.ms": str(MAX_POLL_INTERVAL_MS),
    "partition.assignment.strategy": "range",
}
_BROKER_SETTINGS: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
_END_TIMEOUT_S: Final = 15
BROKER: Final = "broker"
"""Name of the notes with the interval in which connections are refused."""


class Program:
    """One client program; its output becomes notes of the recording."""

    def __init__(self, command: list[str], client_id: str, proxy: RecordingProxy) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own command line
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent
        )
        self._client_id = client_id
        self._proxy = proxy
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def tell(self, command: str) -> None:
        """Send the program a command."""
        if self._process.stdin is not None and self._process.poll() is None:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        self._listener.join()

    def close(self) -> None:
        """Close the program's consumer and wait for its end."""
        self.tell("close")
        self._process.wait(_END_TIMEOUT_S)

    def _listen(self) -> None:
        if self._process.stdout is not None:
            with self._process.stdout as lines:
                for line in lines:
                    self._proxy.note(self._client_id, line.strip())


class Stage:
    """The stage of a situation: a broker behind a proxy, and programs that come and go."""

    def __init__(
        self, command: list[str], broker: Broker, proxy: RecordingProxy, port: int
    ) -> None:
        self.broker = broker
        self.proxy = proxy
        self.group_id = "g"
        self._command = command
        self._bootstrap = f"{_HOST}:{port}"
        self._programs: list[Program] = []

    def start(self, client_id: str, **settings: str) -> Program:
        """Start a program; settings by Kafka's names with `_` for `.`."""
        chosen = {
            "client.id": client_id,
            **_CLIENT_SETTINGS,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.proxy.note(client_id, "start")
        arguments = [self._bootstrap, self.group_id, TOPIC]
        arguments += [f"{name}={value}" for name, value in chosen.items()]
        program = Program([*self._command, *arguments], client_id, self.proxy)
        self._programs.append(program)
        return program

    def wait(self, seconds: float) -> None:
        """Let the clients run for the given time."""
        time.sleep(seconds)

    def fault(self, client_id: str, api: ApiKey, error: ErrorCode | None, step: str) -> None:
        """Inject a fault into the client's next request of the API, and name the step so."""
        self.proxy.set_step(step)
        self.proxy.add_fault(Fault(client_id, api, error))

    def end(self) -> None:
        """Kill running programs."""
        for program in self._programs:
            program.kill()


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
SITUATIONS: Final[dict[str, Situation]] = {
    situation.__name__.replace("_", "-"): situation
    for situation in (
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
}


def program_of(client: str, directory: Path) -> list[str]:
    """Return the command line of a client's program; franz-go's is built first.

    Raises:
        ConfigError: the client is unknown, or Go cannot build it.
    """
    if client == "librdkafka":
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
    raise ConfigError(f"client {client!r}: must be librdkafka or franz-go")


def record(client: str, names: list[str], out: Path) -> None:
    """Play the situations, each into a file of its own."""
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        command = program_of(client, directory)
        port = free_ports()[0]
        advertised = {"advertised.listeners": f"PLAINTEXT://{_HOST}:{port}"}
        broker = stack.enter_context(Broker(directory / "broker", _BROKER_SETTINGS | advertised))
        upstream = (_HOST, int(broker.bootstrap.rpartition(":")[2]))
        with RecordingProxy((_HOST, port), upstream, io.StringIO()).running():
            _create_topic(f"{_HOST}:{port}")
        for name in names:
            with (out / f"{client}-{name}.jsonl").open("w", encoding="utf-8") as lines:
                apis = GROUP_APIS | {ApiKey.METADATA}
                proxy = RecordingProxy((_HOST, port), upstream, lines, apis=apis, step=name)
                with proxy.running():
                    stage = Stage(command, broker, proxy, port)
                    stage.group_id = f"{client}-{name}"
                    try:
                        SITUATIONS[name](stage)
                    finally:
                        stage.end()
            sys.stdout.write(f"{name}\n")
            sys.stdout.flush()


def _create_topic(bootstrap: str) -> None:
    """Create the topic with its records; a first group creates the offsets topic."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITION_COUNT, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(PARTITION_COUNT):
        for _ in range(RECORD_COUNT):
            producer.produce(TOPIC, b"record", partition=partition)
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
    parser.add_argument("client", choices=("librdkafka", "franz-go"))
    parser.add_argument("situations", nargs="*", metavar="SITUATION", help=", ".join(SITUATIONS))
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.situations if name not in SITUATIONS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(SITUATIONS)}")
    record(options.client, options.situations or list(SITUATIONS), options.out)


if __name__ == "__main__":
    main()
