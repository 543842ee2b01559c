"""Builds a reference with Maven on first use, or when its sources are newer."""

import shutil
import subprocess
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Final

from coordinator_sim.errors import DataError, MissingDependencyError
from coordinator_sim_conformance.differ.references import Reference

ORACLE: Final = Path(__file__).parents[1] / "oracle"
"""Folder of the harnesses, in a checkout of the project; a wheel has none."""
SHARED: Final = ("lines", "broker", "batches", "wheel")
"""Folders of sources that several harnesses compile."""
BUILT: Final = "built"
"""File whose time is that of the last whole build."""
JVM_OPTIONS: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def built(reference: Reference, say: Callable[[str], None]) -> tuple[list[str], Path]:
    """Return the command that runs a reference and its folder; build it if need be.

    Args:
        reference: Reference to run.
        say: Called before long steps.

    Raises:
        MissingDependencyError: Java, Maven or the harness's source is missing.
        DataError: the build failed.
    """
    _require("java", "a Java 17 runtime")
    folder = ORACLE / reference.harness
    target = folder / "target" / f"kafka-{reference.kafka_version}"
    if not _is_fresh(target, folder):
        _build(reference, target, folder, say)
    class_path = f"{target / 'classes'}:{target / 'lib'}/*"
    return ["java", *JVM_OPTIONS, "-cp", class_path, reference.main_class], folder


def _is_fresh(target: Path, folder: Path) -> bool:
    """Whether a build exists, and no source is newer."""
    if not (target / BUILT).is_file():
        return False
    sources = [folder / "pom.xml", *(folder / "src").rglob("*.*")]
    for shared in SHARED:
        sources += (ORACLE / shared).rglob("*.java")
    built_at = (target / BUILT).stat().st_mtime
    return all(source.stat().st_mtime <= built_at for source in sources if source.is_file())


def _require(program: str, what: str) -> None:
    if shutil.which(program) is None:
        raise MissingDependencyError(f"{program} is not installed: {what} is needed")


def _build(reference: Reference, target: Path, folder: Path, say: Callable[[str], None]) -> None:
    if not (folder / "pom.xml").is_file():
        raise MissingDependencyError(
            f"{folder} has no sources of the harness: run from a checkout of the project"
        )
    _require("mvn", f"Maven builds {reference.name} from its artefacts, once")
    building = ORACLE / "target" / "building"
    building.parent.mkdir(exist_ok=True)
    with building.open("w") as lock:
        flock(lock, LOCK_EX)
        if not _is_fresh(target, folder):  # Another process may have built it meanwhile.
            say(f"building {reference.name} with Maven, once ...")
            _package(reference, folder)
            (target / BUILT).touch()


def _package(reference: Reference, folder: Path) -> None:
    done = subprocess.run(  # noqa: S603 - Maven on our own harness
        ["mvn", "-q", "-B", "package", f"-Dkafka.version={reference.kafka_version}"],  # noqa: S607 - as found by `which`
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["no output"]
        raise DataError(f"Maven could not build {reference.name}: {lines[0]}")
