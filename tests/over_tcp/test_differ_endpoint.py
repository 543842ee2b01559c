"""Random programs on a running server and on the simulator, and what a broken server leaves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app
from tests.over_tcp.test_endpoint import FRIENDLY, serving

BROKEN: Final = """
import sys
from coordinator_sim_conformance.museum.breaking import install
from coordinator_sim_conformance.museum.exhibits import exhibit_named
install(exhibit_named(sys.argv.pop(1)))
from coordinator_sim.cli.main import main
main()
"""
"""`coordinator-sim` with a fault of the museum in it."""


def differ(*words: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    done = CliRunner().invoke(app, ["differ", *words])
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def correct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server as it should be."""
    with serving(tmp_path_factory.mktemp("correct"), *FRIENDLY) as bootstrap:
        yield bootstrap


def test_a_correct_server_agrees(correct: str) -> None:
    """Three hundred requests in programs side by side, and nothing is left behind."""
    code, output = differ("--reference", correct, "--operations", "300", "--program-steps", "20")

    assert code == 0, output
    assert "300 operations in 15 programs" in output
    assert output.rstrip().endswith("no unexplained difference")
    assert "left behind" not in output


def test_a_broken_server_is_found_and_made_small(correct: str, tmp_path: Path) -> None:
    """One request is left of the program, in five forms; the script tells both servers apart."""
    out = tmp_path / "out"
    script = out / "script.jsonl"
    program = ("-c", BROKEN, "KAFKA-7824", "serve")
    with serving(tmp_path, *FRIENDLY[:2], program=program) as broken:
        found, output = differ(
            *("--reference", broken, "--operations", "60", "--program-steps", "10"),
            *("--out", str(out)),
        )
        again, _ = differ("--reference", broken, "--script", str(script))
    there, _ = differ("--reference", correct, "--script", str(script))
    commands = [json.loads(line) for line in script.read_text(encoding="utf-8").splitlines()]
    diagram = (out / "sequence.mmd").read_text(encoding="utf-8")

    assert (found, again, there) == (1, 1, 0), output
    assert sum(command["op"] == "call" for command in commands) == 1
    assert "errorCode (JoinGroup)" in (out / "transcript.txt").read_text(encoding="utf-8")
    assert diagram.startswith("sequenceDiagram\n")
    assert "Kafka 4.4 answers 79" in diagram
    assert (out / "frames.pcap").read_bytes()[:4] == b"\x4d\x3c\xb2\xa1"
    compile((out / "test_difference.py").read_text(encoding="utf-8"), "test_difference.py", "exec")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--reference", "localhost:0"), "--reference 'localhost:0': wants HOST:PORT"),
        (("--reference", "127.0.0.1:1"), "no connection to 127.0.0.1:1"),
        (("--reference", "h:1", "--lines", "x"), "--lines goes with a reference in virtual time"),
        (("--declared", __file__), "--declared goes with --reference HOST:PORT"),
    ],
)
def test_misuse_is_one_line(words: tuple[str, ...], message: str) -> None:
    """The value and what it may be."""
    done = CliRunner().invoke(app, ["differ", *words])

    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception}"
