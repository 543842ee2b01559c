"""A broker, a watch beside it, and the clients of a night, whose logs one folder has."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final, Self

import msgspec
from confluent_kafka import Producer
from msgspec import Struct

from coordinator_sim_conformance.child_processes import end_with_us
from coordinator_sim_conformance.real_kafka import kafka, streams
from coordinator_sim_conformance.real_kafka.connect import RealWorker
from coordinator_sim_conformance.real_kafka.night.story import (
    DELAY_S,
    SESSION_S,
    Group,
    Step,
    Truth,
)
from coordinator_sim_conformance.real_kafka.three_sources import SERVER_LOG, LoggingBroker
from coordinator_sim_conformance.real_kafka.tools import Tools

_WRITTEN: Final = {"orders": 4, "payments": 4, "refunds": 4, "clicks": 4}
"""Partitions of topics that records are written to, all night."""
_TOPICS: Final = _WRITTEN | {"trials": 2, "files": 1}
_LIBRDKAFKA: Final = "coordinator_sim_conformance.real_kafka.upgrade.librdkafka_members"
_PATIENCE_S: Final = 30.0
_POLL_S: Final = 0.1
_RECORD_S: Final = 0.05
_OF_EPOCHS: Final = {
    **{f"{name}session.timeout.ms": str(SESSION_S * 1000) for name in ("", "min.")},
    **{f"{name}heartbeat.interval.ms": "1000" for name in ("", "min.")},
}
_SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "8",
    "group.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    **{
        f"group.{kind}.{name}": value
        for kind in ("consumer", "streams")
        for name, value in _OF_EPOCHS.items()
    },
}
_LOGGING: Final = (
    "-Duser.timezone=UTC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=[yyyy-MM-dd HH:mm:ss,SSS]",
)
_SIGNALS: Final = {"hold": signal.SIGSTOP, "release": signal.SIGCONT}
_FILE_SOURCE: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"


class Taken(Struct, frozen=True):
    """A step of a group, written down before it was taken.

    Args:
        at_ms: Milliseconds since 1970.
        truths: As of the step, with the client ids of members.
    """

    at_ms: int
    group: str
    action: str
    truths: tuple[Truth, ...]


class Client:
    """A client in a process of its own, which takes lines and prints what happens to it."""

    def __init__(self, command: list[str], out: Path, log: Path) -> None:
        self._files = out, log
        with out.open("wb") as printed, log.open("wb") as logged:
            self.process = subprocess.Popen(  # noqa: S603 - our own programs
                command, stdin=subprocess.PIPE, stdout=printed, stderr=logged
            )
        end_with_us(self.process)

    def tell(self, line: str) -> None:
        """Send it a line."""
        if self.process.stdin is not None:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    def await_text(self, text: str) -> None:
        """Wait until it has printed or logged a text, or patience is over."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            if any(text in each.read_text("utf-8") for each in self._files):
                return
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """End its input, on which it shuts down, and wait for its end."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


class Cluster:
    """Everything that runs in a night, to be used as a context.

    Args:
        folder: New folder: `logs` has what is ingested, `watch` the traces of the watch,
            `truth.jsonl` the steps.
    """

    def __init__(self, folder: Path) -> None:
        self.logs, self.work, self._folder = folder / "logs", folder / "work", folder
        for each in (self.logs, self.work):
            each.mkdir(parents=True)
        self.broker = LoggingBroker(self.work / "broker", _SETTINGS)
        self.jars = f"{kafka.jars_of(kafka.BROKER_VERSION)}{os.sep}*"
        self.streams = streams.member_command(streams.STREAMS_VERSION, self.work)
        self.starting = Lock()
        self._writing, self._asking, self._is_over = Lock(), Lock(), Event()
        self._starts = 0
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        """Start the broker, the watch, the tools and a producer."""
        source = str(kafka.HERE / "UpgradeMembers.java")
        subprocess.run(["javac", "-cp", self.jars, "-d", str(self.work), source], check=True)  # noqa: S603, S607
        self._exits.enter_context(self.broker)
        where = ["--bootstrap", self.broker.bootstrap, "--out", str(self._folder / "watch")]
        command = [sys.executable, "-m", "coordinator_sim", "watch", *where]
        self._watch = Client(command, self.work / "watch.out", self.work / "watch.err")
        self._tools = self._exits.enter_context(Tools(self.broker.bootstrap))
        for topic, partitions in _TOPICS.items():
            self.ask(*f"topics --create --topic {topic} --partitions {partitions}".split())
        self._producing = Thread(target=self._produce, daemon=True)
        self._producing.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the watch, then the rest; the broker's log joins those of the clients."""
        self._is_over.set()
        self._producing.join()
        self._watch.process.send_signal(signal.SIGINT)
        self._watch.stop()
        self._exits.close()
        (self.broker.directory / SERVER_LOG).rename(self.logs / SERVER_LOG)

    def write(self, group: str, action: str, truths: tuple[Truth, ...]) -> None:
        """Write down a step that comes next."""
        named = tuple(
            msgspec.structs.replace(each, member=f"{group}-{each.member}" if each.member else "")
            for each in truths
        )
        line = msgspec.json.encode(Taken(int(time.time() * 1000), group, action, named)) + b"\n"
        with self._writing, (self._folder / "truth.jsonl").open("ab") as out:
            out.write(line)

    def ask(self, tool: str, *arguments: str) -> None:
        """Run one of Kafka's tools."""
        with self._asking:
            self._tools.run(tool, *arguments)

    def files(self, name: str) -> tuple[Path, Path]:
        """Return new files for what a client prints, and for its log."""
        self._starts += 1
        return self.work / f"{name}-{self._starts}.out", self.logs / f"{name}-{self._starts}.log"

    def _produce(self) -> None:
        """Write records until the night is over."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        count = 0
        while not self._is_over.wait(_RECORD_S):
            for topic, partitions in _WRITTEN.items():
                producer.produce(topic, str(count), str(count), partition=count % partitions)
            producer.poll(0)
            count += 1


class Members:
    """The members of one group, and what is done to them."""

    def __init__(self, cluster: Cluster, group: Group) -> None:
        self.group = group
        self._cluster = cluster
        self._settings = dict(group.settings)
        self._members: dict[str, Client] = {}
        self._workers: dict[str, RealWorker] = {}

    def take(self, step: Step) -> None:
        """Write a step down, take it, and wait as long as it says."""
        self._cluster.write(self.group.name, step.action, step.truths)
        self._do(*step.action.split())
        time.sleep(step.wait_s)

    def end(self) -> None:
        """Kill all members."""
        for member in self._members.values():
            member.kill()
        for worker in self._workers.values():
            worker.kill()

    def _do(self, action: str, *words: str) -> None:
        members = self._workers or self._members
        match action:
            case "start" | "bounce":
                if action == "bounce":
                    self._members.pop(words[0]).stop()
                self._start(words[0])
            case "stop" | "kill":
                getattr(members.pop(words[0]), action)()
            case "hold" | "release":
                self._members[words[0]].process.send_signal(_SIGNALS[action])
            case "tell":
                line = " ".join(words[1:]).replace("TOPICS", self.group.topics)
                line = line.replace("GROUP", self.group.name)
                self._members[words[0]].tell(line.replace("NAME", self._name(words[0])))
            case "set":
                name, _, value = words[0].partition("=")
                self._settings[name] = value
            case "ask":
                self._cluster.ask(*words)
            case "put":
                file = {"connector.class": _FILE_SOURCE, "file": f"{words[0]}.txt"}
                self._request("PUT", f"{words[0]}/config", file | {"topic": words[1]})
            case "delete":
                self._request("DELETE", words[0])

    def _name(self, letter: str) -> str:
        return f"{self.group.name}-{letter}"

    def _start(self, letter: str) -> None:
        """Start a member and wait until it has work; JVMs start one after the other."""
        cluster, name = self._cluster, self._name(letter)
        settings = {key: each.replace("NAME", name) for key, each in self._settings.items()}
        out, log = cluster.files(name)
        bootstrap = cluster.broker.bootstrap
        java = ["java", *kafka.JVM, *_LOGGING, "-cp", f"{cluster.work}{os.pathsep}{cluster.jars}"]
        if self.group.kind == "connect":
            self._workers[letter] = self._worker(name, log, settings)
            return
        if self.group.kind == "streams":
            at = cluster.streams.index("-cp")
            java = [*cluster.streams[:at], *_LOGGING, *cluster.streams[at:]]
            given = [f"{key}={each}" for key, each in settings.items()]
            where = [bootstrap, self.group.name, self.group.topics, f"client.id={name}"]
            with cluster.starting:
                self._members[letter] = Client([*java, *where, *given], out, log)
                self._members[letter].await_text("from REBALANCING to RUNNING")
            return
        command = [*java, "UpgradeMembers", bootstrap]
        if self.group.kind == "librdkafka":
            command = [sys.executable, "-m", _LIBRDKAFKA, bootstrap]
            settings["debug"] = "cgrp"
        given = [f"{key}={each}" for key, each in settings.items()]
        with cluster.starting:
            client = self._members[letter] = Client(command, out, log)
            about = f"group.id={self.group.name}"
            client.tell(" ".join(["start", name, self.group.topics, about, *given]))
            client.await_text(" assigned ")

    def _worker(self, name: str, log: Path, settings: dict[str, str]) -> RealWorker:
        own = {"client.id": name, "scheduled.rebalance.max.delay.ms": str(DELAY_S * 1000)}
        folder = self._cluster.work / log.stem
        folder.mkdir()
        bootstrap = self._cluster.broker.bootstrap
        worker = RealWorker(folder, bootstrap, self.group.name, own | settings)
        worker.jvm = (*kafka.JVM, *_LOGGING, f"-Dorg.slf4j.simpleLogger.logFile={log.resolve()}")
        with self._cluster.starting:
            worker.start()
        return worker

    def _request(self, method: str, target: str, body: dict[str, str] | None = None) -> None:
        data = None if body is None else json.dumps(body).encode()
        url = f"{self._workers['a'].url}/connectors/{target}"
        request = urllib.request.Request(url, data, method=method)  # noqa: S310 - http
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=_PATIENCE_S):  # noqa: S310 - http
            pass
