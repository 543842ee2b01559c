"""When a harness of Kafka's classes is built anew."""

import os
from pathlib import Path

from coordinator_sim_conformance.differ.building import BUILT, _is_fresh


def harness(folder: Path) -> Path:
    """A folder with a build description and one source; its target folder."""
    (folder / "src").mkdir(parents=True)
    (folder / "pom.xml").touch()
    (folder / "src" / "Oracle.java").touch()
    target = folder / "target" / "kafka-0.0.0"
    target.mkdir(parents=True)
    return target


def test_a_harness_that_was_never_built_is_built(tmp_path: Path) -> None:
    """A target folder alone, of a build that broke off, is no build."""
    assert not _is_fresh(harness(tmp_path), tmp_path)


def test_a_build_lasts_until_a_source_changes(tmp_path: Path) -> None:
    """A source that is newer than the build asks for another."""
    target = harness(tmp_path)
    built = target / BUILT
    built.touch()
    later = built.stat().st_mtime + 60
    os.utime(built, (later, later))
    assert _is_fresh(target, tmp_path)
    os.utime(tmp_path / "src" / "Oracle.java", (later + 60, later + 60))
    assert not _is_fresh(target, tmp_path)
