"""The stage of a recorded situation: a broker behind a proxy, and programs that come and go."""

import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.real_kafka.kafka import Broker
from tools.record_proxy import Fault, RecordingProxy

HERE: Final = Path(__file__).parent
TOPIC: Final = "orders"
HOST: Final = "127.0.0.1"
BROKER: Final = "broker"
"""Name of the notes with the interval in which connections are refused."""
_END_TIMEOUT_S: Final = 15


class Program:
    """One client program; its output becomes notes of the recording."""

    def __init__(self, command: list[str], client_id: str, proxy: RecordingProxy) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own command line
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE.parent
        )
        self._client_id = client_id
        self._proxy = proxy
        self._has_spoken = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_until_it_runs(self) -> "Program":
        """Wait for its first line: a JVM takes a while to start."""
        self._has_spoken.wait(_END_TIMEOUT_S)
        return self

    def tell(self, command: str) -> None:
        """Send the program a command."""
        if self._process.stdin is not None and self._process.poll() is None:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()

    def freeze(self) -> None:
        """Stop the process where it is, as a machine without time for it does."""
        self._process.send_signal(signal.SIGSTOP)
        self._proxy.note(self._client_id, "frozen")

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._proxy.note(self._client_id, "thawed")
        self._process.send_signal(signal.SIGCONT)

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
                    self._has_spoken.set()
                    self._proxy.note(self._client_id, line.strip())


class Stage:
    """The stage of a situation.

    Args:
        command: Command line of a program, without arguments.
        broker: The broker.
        proxy: Proxy before it, where clients connect.
        port: The proxy's port.
        settings: Settings of every program.
    """

    def __init__(
        self,
        command: list[str],
        broker: Broker,
        proxy: RecordingProxy,
        port: int,
        settings: Mapping[str, str],
    ) -> None:
        self.broker = broker
        self.proxy = proxy
        self.group_id = "g"
        self._command = command
        self._settings = settings
        self._bootstrap = f"{HOST}:{port}"
        self._programs: list[Program] = []

    def start(self, client_id: str, topic: str = TOPIC, **settings: str) -> Program:
        """Start a program; settings by Kafka's names with `_` for `.`."""
        chosen = {
            "client.id": client_id,
            **self._settings,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.proxy.note(client_id, "start")
        arguments = [self._bootstrap, self.group_id, topic]
        arguments += [f"{name}={value}" for name, value in chosen.items()]
        program = Program([*self._command, *arguments], client_id, self.proxy)
        self._programs.append(program)
        return program

    def wait(self, seconds: float) -> None:
        """Let the clients run for the given time."""
        time.sleep(seconds)

    def freeze_broker(self, seconds: float) -> None:
        """Stop the broker's process for the given time; it keeps its connections."""
        process = self.broker.process
        if process is not None:
            process.send_signal(signal.SIGSTOP)
            self.wait(seconds)
            process.send_signal(signal.SIGCONT)

    def fault(self, client_id: str, api: ApiKey, error: ErrorCode | None, step: str) -> None:
        """Inject a fault into the client's next request of the API, and name the step so."""
        self.proxy.set_step(step)
        self.proxy.add_fault(Fault(client_id, api, error))

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, each with one record."""
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewPartitions

        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        for each in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            each.result()
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for number in range(partitions):
            producer.produce(topic, b"record", partition=number)
        producer.flush()

    def end(self) -> None:
        """Kill running programs."""
        for program in self._programs:
            program.kill()
