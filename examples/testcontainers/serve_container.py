"""coordinator-sim serve in a container, for users of Testcontainers for Python.

Needs Docker, `pip install testcontainers httpx`, and the image of the Dockerfile at the top of this
repository: `docker build -t coordinator-sim .`. The project's own tests have no Docker: they check
that this file is sound Python, and run the same commands without a container.

    with CoordinatorSim(topics="orders:6") as kafka:
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, ...})
        kafka.control.post("/v1/faults", json={"action": {"do": "drop"}, "times": 1})
        kafka.control.get("/v1/groups/app/wait", params={"state": "Stable", "members": 2})

A client reaches the broker at the address that the broker advertises, so the port on the host has
to be known before the container starts: it is chosen here, and bound to the same one inside.
"""

import secrets
import socket
import time
from contextlib import suppress
from typing import Self

import httpx
from testcontainers.core.container import DockerContainer

IMAGE = "coordinator-sim"
CONTROL_PORT = 9099
KAFKA_PORT = 9092
READY_LIMIT_S = 30


class CoordinatorSim(DockerContainer):
    """One server with its control surface.

    Args:
        topics: Topics to begin with, `name:partitions,...`.
        arguments: More of `serve`'s options.
        image: Name of the image.
    """

    def __init__(self, topics: str = "", arguments: str = "", image: str = IMAGE) -> None:
        super().__init__(image)
        token = secrets.token_urlsafe()
        self._port = _free_port()
        self.with_bind_ports(KAFKA_PORT, self._port)
        self.with_exposed_ports(CONTROL_PORT)
        self.with_env("ADVERTISED", f"PLAINTEXT://localhost:{self._port}")
        self.with_env("COORDINATOR_SIM_CONTROL_TOKEN", token)
        chosen = f"--topics {topics} {arguments}" if topics else arguments
        self.with_command(chosen.strip())
        self.control = httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=60)

    @property
    def bootstrap(self) -> str:
        """What goes into `bootstrap.servers`."""
        return f"localhost:{self._port}"

    def start(self) -> Self:
        """Start, and return when every listener answers."""
        super().start()
        port = self.get_exposed_port(CONTROL_PORT)
        self.control.base_url = httpx.URL(f"http://{self.get_container_host_ip()}:{port}")
        _await_ready(f"{self.control.base_url}/readyz")
        return self

    def stop(self, *, force: bool = True, delete_volume: bool = True) -> None:
        """Stop and remove the container."""
        self.control.close()
        super().stop(force=force, delete_volume=delete_volume)


def _await_ready(url: str) -> None:
    deadline = time.monotonic() + READY_LIMIT_S
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if httpx.get(url, timeout=1).is_success:
                return
        time.sleep(0.05)
    raise TimeoutError(f"{url} is not ready after {READY_LIMIT_S} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
