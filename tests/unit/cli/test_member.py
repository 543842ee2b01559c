"""What `member` says of a command line that cannot work."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import run_here

GOOD = {"--bootstrap": "127.0.0.1:1", "--group": "g", "--topics": "orders"}


def said(**changes: str) -> str:
    """The error of `member` with some options changed; it is one line and exit code 2."""
    options = {**GOOD, **{f"--{name}": value for name, value in changes.items()}}
    words = [word for pair in options.items() for word in pair]
    done = run_here("member", *words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("address", ["localhost", "localhost:x", ":9092", "h:70000", " , "])
def test_a_bad_address_is_refused(address: str) -> None:
    """The message shows what an address looks like."""
    assert "HOST:PORT, as localhost:9092" in said(bootstrap=address)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    """A typing error in a setting or an assignor costs no connection."""
    assert "session.timeout.ms" in said(set="sesion.timeout.ms=1")
    assert "cooperative-sticky" in said(assignor="rang")


def test_without_the_library_for_records_a_member_has_its_membership_alone() -> None:
    """The member's modules import without confluent-kafka."""
    code = (
        "import sys; sys.modules['confluent_kafka'] = None; "
        "from coordinator_sim.live import consumer, driver, story"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_wants_its_properties(tmp_path: Path) -> None:
    """A file is named, holds what a worker must have, and manifests lie in a folder."""
    file = tmp_path / "worker.properties"
    file.write_text("group.id=g\n", encoding="utf-8")

    assert "--config FILE" in worker_said()
    assert "key.converter" in worker_said("--config", str(file))
    assert "no folder" in worker_said("--config", str(file), "--manifests", str(tmp_path / "x"))


def worker_said(*words: str) -> str:
    """The error of `member --connect`; it is one line and exit code 2."""
    done = run_here("member", "--connect", "--bootstrap", "127.0.0.1:1", *words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_options_of_the_other_kind_of_member_are_refused() -> None:
    """A consumer has no manifests, a worker no topics."""
    assert "add --connect" in said(config="x")
    assert "a consumer's" in worker_said("--topics", "a")


def test_no_topic_is_refused() -> None:
    """A consumer without topics would do nothing; topics and a pattern exclude each other."""
    assert "name topics with commas" in said(topics=",")
    assert "and not both" in said(pattern="t.*")
