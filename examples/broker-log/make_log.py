"""Makes `server.log`: a real Apache Kafka broker's log of a few minutes of consumer group life.

Boots one broker from Maven artefacts, runs a fleet of consumers through the events of any week
(scale-out, rolling bounce, crash, static members, a deleted group) and keeps what the broker
logged. Nothing in the log is invented; only the working directory's path is replaced.

Needs Java 17 or later, Maven, and a Python with confluent-kafka:

    python make_log.py --out server.log
    python make_log.py --kafka-version 4.3.1 --work /somewhere/with/space --out server.log

A run takes about three minutes, and longer the first time, when Maven loads the broker.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>coordinator-sim</groupId><artifactId>broker</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{kafka_version}</version>
      <exclusions><exclusion>
        <groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId>
      </exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>{log4j_version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId>
      <version>{log4j_version}</version>
    </dependency>
  </dependencies>
</project>
"""
COPY_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
LOG4J_VERSION: Final = "2.25.1"
LOG4J: Final = """\
status = error
appender.out.type = File
appender.out.name = out
appender.out.fileName = {log}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
logger.raft.name = org.apache.kafka.raft
logger.raft.level = warn
logger.image.name = org.apache.kafka.image
logger.image.level = warn
logger.storage.name = org.apache.kafka.storage
logger.storage.level = warn
"""
"""The broker's default layout; loggers that repeat settings or tell of metadata are quiet."""
PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
group.min.session.timeout.ms=1000
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
auto.create.topics.enable=false
"""
CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
FORMAT: Final = ("kafka.tools.StorageTool", "format", "-t")
SHOWN_DIRECTORY: Final = "/var/lib/kafka"
SESSION_TIMEOUT_MS: Final = 6_000
BOOT_TIMEOUT_S: Final = 90
PARTITIONS: Final = 8
TOPIC: Final = "orders"


def resolve(work: Path, kafka_version: str) -> Path:
    """The directory with the broker's jars, filled by Maven."""
    work.mkdir(parents=True, exist_ok=True)
    lib = work / f"lib-{kafka_version}"
    if not lib.is_dir():
        pom = work / "pom.xml"
        pom.write_text(POM.format(kafka_version=kafka_version, log4j_version=LOG4J_VERSION))
        command = [_program("mvn"), "-q", "-B", "-f", str(pom), COPY_GOAL]
        subprocess.run([*command, f"-DoutputDirectory={lib}", "-DincludeScope=runtime"], check=True)
    return lib


@dataclass
class Broker:
    """One broker in a process of its own."""

    work: Path
    lib: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """The broker's log file."""
        return self.work / "broker.log"

    def start(self) -> None:
        """Format a fresh data directory, boot, and wait until clients are served."""
        data = self.work / "data"
        shutil.rmtree(data, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        properties = self.work / "server.properties"
        properties.write_text(
            PROPERTIES.format(port=self.port, controller_port=self.port + 1, data=data)
        )
        (self.work / "log4j2.properties").write_text(LOG4J.format(log=self.log))
        subprocess.run(
            [*self._java(), *FORMAT, CLUSTER_ID, "-c", str(properties)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.log.unlink(missing_ok=True)
        self.process = subprocess.Popen([*self._java(), "kafka.Kafka", str(properties)])
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        while "Kafka Server started" not in self._text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the broker did not start; see {self.log}")
            time.sleep(0.2)

    def stop(self) -> None:
        """Shut the broker down in good order."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=BOOT_TIMEOUT_S)

    def _java(self) -> list[str]:
        config = f"-Dlog4j2.configurationFile={self.work / 'log4j2.properties'}"
        return [_program("java"), "-Xmx512m", config, "-cp", f"{self.lib}/*"]

    def _text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


@dataclass
class Fleet:
    """Consumers of one group, each a process, by name."""

    bootstrap: str
    group: str
    options: tuple[str, ...] = ()
    static: bool = False
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start one consumer."""
        settings = [f"bootstrap.servers={self.bootstrap}", f"group.id={self.group}"]
        settings += [f"client.id={name}", *self.options]
        if self.static:
            settings.append(f"group.instance.id={name}")
        command = [sys.executable, __file__, "--consume", *settings]
        self.processes[name] = subprocess.Popen(command)

    def close(self, name: str) -> None:
        """Let one consumer close; a dynamic one leaves its group."""
        self._end(name, signal.SIGTERM)

    def crash(self, name: str) -> None:
        """Kill one consumer: the group learns of it when its session expires."""
        self._end(name, signal.SIGKILL)

    def close_all(self) -> None:
        """Let every consumer close, one after the other."""
        for name in list(self.processes):
            self.close(name)

    def _end(self, name: str, how: signal.Signals) -> None:
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(timeout=30)


def consume(settings: list[str]) -> None:
    """Be one consumer until SIGTERM: the child process of a `Fleet`."""
    from confluent_kafka import Consumer

    config: dict[str, str] = dict(setting.split("=", 1) for setting in settings)
    if config.get("group.protocol") != "consumer":
        config["session.timeout.ms"] = str(SESSION_TIMEOUT_MS)
        config["heartbeat.interval.ms"] = "1000"
    consumer = Consumer(config | {"auto.offset.reset": "earliest"})
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    consumer.subscribe([TOPIC])
    while not stopping:
        consumer.poll(0.1)
    consumer.close()


def story(bootstrap: str) -> None:
    """What happens to the groups; the pauses let each rebalance end before the next."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    orders = Fleet(bootstrap, "orders-service", ("partition.assignment.strategy=range",))
    billing = Fleet(
        bootstrap, "billing", ("partition.assignment.strategy=cooperative-sticky",), static=True
    )
    audit = Fleet(bootstrap, "audit", ("group.protocol=consumer",))
    fleets = (orders, billing, audit)
    try:
        _scale_out_and_bounce(orders)
        _crash(orders)
        _static_members(billing)
        audit.start("audit-1")
        audit.start("audit-2")
        time.sleep(8)
        for fleet in fleets:
            fleet.close_all()
        time.sleep(SESSION_TIMEOUT_MS / 1_000 + 2)
        admin.delete_consumer_groups(["orders-service"])["orders-service"].result()
        time.sleep(1)
        orders.start("orders-1")
        time.sleep(6)
    finally:
        for fleet in fleets:
            fleet.close_all()


def _scale_out_and_bounce(orders: Fleet) -> None:
    names = [f"orders-{number}" for number in range(1, 5)]
    for name in names:
        orders.start(name)
        time.sleep(8 if name == names[0] else 3)
    time.sleep(3)
    for name in names:
        orders.close(name)
        time.sleep(2.5)
        orders.start(name)
        time.sleep(3)


def _crash(orders: Fleet) -> None:
    orders.crash("orders-2")
    time.sleep(SESSION_TIMEOUT_MS / 1_000 + 4)
    orders.start("orders-5")
    time.sleep(4)


def _static_members(billing: Fleet) -> None:
    for number in range(1, 4):
        billing.start(f"billing-{number}")
        time.sleep(4)
    billing.close("billing-2")
    time.sleep(1.5)
    billing.start("billing-2")
    time.sleep(4)
    billing.crash("billing-3")
    time.sleep(SESSION_TIMEOUT_MS / 1_000 + 5)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SystemExit(f"{name} is not on the PATH; install it and try again")
    return path


def main() -> None:
    """Make the log."""
    parser = argparse.ArgumentParser(description="Record the log of a real broker.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("server.log"))
    parser.add_argument("--kafka-version", default="4.4.0")
    parser.add_argument("--port", type=int, default=19092, help="the next one is used too")
    parser.add_argument("--work", type=Path, help="jars and data; default: a temporary directory")
    parser.add_argument("--consume", nargs="+", metavar="SETTING", help="be one consumer")
    arguments = parser.parse_args()
    if arguments.consume:
        consume(arguments.consume)
        return
    work = (arguments.work or Path(tempfile.mkdtemp(prefix="broker-log-"))).resolve()
    broker = Broker(work, resolve(work, arguments.kafka_version), arguments.port)
    try:
        broker.start()
        story(f"127.0.0.1:{arguments.port}")
    finally:
        broker.stop()
    text = broker.log.read_text(encoding="utf-8").replace(str(work), SHOWN_DIRECTORY)
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{arguments.out}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
