"""Apache Kafka's own Trogdor: the commands that start its coordinator and agents."""

import json
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from coordinator_sim_conformance.real_kafka.kafka import HERE, JARS_VARIABLE, resolve_jars
from coordinator_sim_conformance.trogdor_cases.processes import Daemons, free_port
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE, PACKAGE, no_op

TROGDOR_VERSION: Final = "4.3.1"
"""Newest release whose Trogdor is published."""

_AGENT: Final = f"{PACKAGE}.agent.Agent"
_JVM: Final = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_ARCHIVE: Final = "daemons.jsa"
_ARCHIVING_S: Final = 30


def trogdor_jars() -> Path:
    """Return the folder with the jars of Trogdor, resolved by Maven on first use.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve them.
    """
    root = Path(os.environ.get(JARS_VARIABLE, HERE / "target"))
    lib = root / f"trogdor-{TROGDOR_VERSION}" / "lib"
    if not any(lib.glob("trogdor-*.jar")):
        resolve_jars(TROGDOR_VERSION, lib, "-Ptrogdor")
    return lib


def java_daemons() -> Daemons:
    """Return the daemons of Apache Kafka.

    They share an archive of their classes: a JVM is up after half the processor time, and dozens
    start at a time.

    Raises:
        MissingDependencyError: Java or Maven is missing, or Maven cannot resolve the jars.
    """
    lib = trogdor_jars()
    java: tuple[str, ...] = ("java", *_JVM, _QUIET, "-cp", f"{lib}{os.sep}*")
    archive = lib.with_name(_ARCHIVE)
    if not archive.exists():
        _archive_classes(java, archive)
    if archive.exists():  # A missing file would turn off the JDK's own archive too.
        java = (*java[:1], f"-XX:SharedArchiveFile={archive}", *java[1:])
    return Daemons(
        coordinator=(*java, f"{PACKAGE}.coordinator.Coordinator"),
        agent=(*java, _AGENT),
    )


def _archive_classes(java: tuple[str, ...], archive: Path) -> None:
    """Write the archive of the classes that an agent needs for one task.

    An agent that hangs at its end (see `OneTaskProcess`) leaves none: daemons then start slower.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made, config = Path(folder, _ARCHIVE), Path(folder, "node.json")
        node = {
            "platform": f"{PACKAGE}.basic.BasicPlatform",
            "nodes": {NODE: {"trogdor.agent.port": str(free_port())}},
        }
        config.write_text(json.dumps(node), "utf-8")
        task = json.dumps(no_op(start_ms=-1, duration_ms=0))
        command = (*java[:1], f"-XX:ArchiveClassesAtExit={made}", *java[1:], _AGENT)
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - the agent of the jars above
                (*command, "-c", str(config), "-n", NODE, "--exec", task),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ARCHIVING_S,
                check=False,
            )
        if made.exists():
            made.replace(archive)
