"""Real Connect workers from Maven artefacts, which can share a group with ours."""

import os
import shutil
import subprocess
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.real_kafka import kafka

CONNECT_VERSION: Final = "4.3.1"
"""Newest release with published Connect artefacts."""

_STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"


def connect_jars() -> Path:
    """Return the folder with the jars of a worker, resolved by Maven on first use.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve them.
    """
    root = Path(os.environ.get(kafka.JARS_VARIABLE, kafka.HERE / "target"))
    lib = root / f"connect-{CONNECT_VERSION}" / "lib"
    if not any(lib.glob("connect-runtime-*.jar")):
        kafka.resolve_jars(CONNECT_VERSION, lib, "-Pconnect")
    return lib


def worker_properties(group_id: str, port: int) -> dict[str, str]:
    """Return settings of a worker of a small cluster, real or ours, without brokers and plugins."""
    return {
        "group.id": group_id,
        "config.storage.topic": f"{group_id}-configs",
        "offset.storage.topic": f"{group_id}-offsets",
        "status.storage.topic": f"{group_id}-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.partitions": "5",
        "status.storage.partitions": "1",
        "key.converter": _STRINGS,
        "value.converter": _STRINGS,
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.discovery": "service_load",
        "scheduled.rebalance.max.delay.ms": "8000",
        "offset.flush.interval.ms": "1000",
    }


def install_nap_connector(plugins: Path) -> None:
    """Compile NapSourceConnector.java into a plugin of its own.

    Raises:
        DataError: javac refuses the source.
    """
    classes = plugins.parent / "nap-classes"
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    service = services / "org.apache.kafka.connect.source.SourceConnector"
    service.write_text("org.example.NapSourceConnector\n", encoding="utf-8")
    source = kafka.HERE / "NapSourceConnector.java"
    folder = plugins / "nap"
    folder.mkdir(parents=True)
    for command in (
        ["javac", "-cp", f"{connect_jars()}{os.sep}*", "-d", str(classes), str(source)],
        ["jar", "--create", "--file", str(folder / "nap.jar"), "-C", str(classes), "."],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            raise DataError(f"{command[0]}: {(done.stdout + done.stderr).strip()[-1000:]}")


class RealWorker(kafka.JavaServer):
    """A Connect worker in a JVM, on a free port of this machine.

    Args:
        directory: Folder of its settings, plugins and log; created if absent.
        bootstrap: Addresses of the brokers.
        group_id: Group id of its cluster.
        properties: Further settings.
    """

    def __init__(
        self,
        directory: Path,
        bootstrap: str,
        group_id: str,
        properties: dict[str, str] | None = None,
    ) -> None:
        super().__init__(directory, "connect.log")
        self.port = kafka.free_ports()[0]
        self._properties = {
            **worker_properties(group_id, self.port),
            "bootstrap.servers": bootstrap,
            "plugin.path": str((directory / "plugins").resolve()),
            **(properties or {}),
        }

    @property
    def url(self) -> str:
        """URL of its REST API, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            DataError: the worker did not start; the message holds the end of its log.
        """
        lib = connect_jars()
        plugins = self.directory / "plugins" / "file"
        plugins.mkdir(parents=True, exist_ok=True)
        for jar in lib.glob("connect-file-*.jar"):
            shutil.copy(jar, plugins)
        settings = self.directory / "connect.properties"
        kafka.write_properties(settings, self._properties)
        self._boot(lib, "org.apache.kafka.connect.cli.ConnectDistributed", settings)

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/connectors", timeout=5):  # noqa: S310 - http
                return True
        except HTTPError as error:
            return error.code == HTTPStatus.UNAUTHORIZED
        except (URLError, OSError):
            return False
