"""Talks to Apache Kafka's own coordinator: one JSON line in, one out."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

Json = dict[str, Any]

MAIN_CLASS = "org.apache.kafka.coordinator.group.Oracle"
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class OracleProcess:
    """A running oracle, built in that directory (`mvn -q package` there)."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            ["java", *JVM_OPTIONS, "-cp", "target/classes:target/lib/*", MAIN_CLASS],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def do(self, op: str, **fields: object) -> Json:
        """Run one command; a command the oracle cannot run is an error of the test."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the oracle has no pipes")
        self._process.stdin.write(json.dumps({"op": op, **fields}) + "\n")
        self._process.stdin.flush()
        answer: Json = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{op} {fields}: {answer['error']}")
        return answer

    def __enter__(self) -> Self:
        """The oracle itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process and close its pipes."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=10)
        if self._process.stdout is not None:
            self._process.stdout.close()


@pytest.fixture(scope="session")
def oracle() -> Iterator[OracleProcess]:
    """The oracle of Kafka 4.4, or a skip that says how to get it."""
    where = os.environ.get("COORDINATOR_SIM_ORACLE")
    if where is None:
        pytest.skip("COORDINATOR_SIM_ORACLE is not set: build the Java oracle and name its folder")
    directory = Path(where)
    if not (directory / "target" / "classes").is_dir():
        pytest.skip(f"no built oracle in {directory}: run `mvn -q package` there")
    with OracleProcess(directory) as process:
        yield process
