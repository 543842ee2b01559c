"""Jars of Kafka that several processes want at once, as the processes of a test run do."""

import subprocess
import sys
from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka import kafka

pytestmark = pytest.mark.real_kafka
RESOLVE = """
import sys
from pathlib import Path
from coordinator_sim_conformance.real_kafka import kafka
kafka.resolve_jars(
    "4.4.0", Path(sys.argv[1]), "-Plog4j2", "-DincludeArtifactIds=log4j-slf4j-impl"
)
"""


def test_processes_that_resolve_at_once_find_the_same_jars(tmp_path: Path) -> None:
    """All go on without an error, also where a run that was killed left half of the jars."""
    lib = tmp_path / "lib"
    kafka.require_writable(lib)
    (lib / "half.jar").write_bytes(b"")
    command = [sys.executable, "-c", RESOLVE, str(lib)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    (jar,) = lib.iterdir()
    assert jar.name.startswith("log4j-slf4j-impl")
