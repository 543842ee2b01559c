"""Real clients judged from outside: a right one, a wrong one, and programs that are no drivers."""

import shlex
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.compiler import request_writer, response_writer
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim_conformance.cli.main import main
from coordinator_sim_conformance.clients.case import all_wire_cases
from coordinator_sim_conformance.clients.known import DRIVERS
from coordinator_sim_conformance.clients.wire import Recorder
from coordinator_sim_conformance.registry import all_client_cases
from coordinator_sim_conformance.running import Verdict
from coordinator_sim_conformance.verdicts.results import read_result
from tests.command_line import run_here

HERE = Path(__file__).parent
CASES = ("C-JOIN-01", "C-HB-02", "C-WIRE-03")


def judged(*arguments: str | Path, cases: tuple[str, ...] = CASES) -> "CompletedProcess[str]":
    """Run `conformance clients` on some cases."""
    wanted = [word for each in cases for word in ("--case", each)]
    return run_here("clients", *arguments, *wanted, command=main)


def test_right_client_passes(tmp_path: Path) -> None:
    """The result file says which client it was, and is one that a matrix takes."""
    file, page = tmp_path / "aiokafka.json", tmp_path / "matrix.html"
    done = judged("--client", "aiokafka", "--result", file)
    assert done.returncode == 0, done.stdout
    result = read_result(file)
    assert (result.target.name, result.profiles) == ("aiokafka", ("clients",))
    assert result.target.version
    assert [each.verdict for each in result.endings] == [Verdict.PASSED] * len(CASES)
    assert any("JoinGroup" in line for line in result.endings[0].transcript)
    shown = run_here("matrix", file, "--about", "clients", "--output", page, command=main)
    assert shown.stdout == f"{page}: cases: {len(CASES)}, implementations: 1\n"


def test_wrong_client_fails_where_it_is_wrong() -> None:
    """A forgotten member id and a commit in an old generation; what is right beside them passes."""
    program = shlex.join([sys.executable, str(HERE / "wrong_client.py")])
    done = judged("--command", program)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("failed ")]
    assert failed == ["C-HB-02", "C-WIRE-03"], done.stdout
    assert done.returncode == 1
    assert "came:     JoinGroup 5 member=- " in done.stdout
    assert f"again:    conformance clients --command '{program}' --case C-HB-02" in done.stdout


def test_any_program_is_judged_by_what_it_sends() -> None:
    """A program that tells nothing and takes nothing; what needs more of it is skipped."""
    driver = DRIVERS / "python_clients.py"
    program = f"sh -c 'exec {sys.executable} {driver} librdkafka $0 $1 $2 >/dev/null'"
    done = judged(
        "--application",
        f"{program} {{bootstrap}} {{group}} {{topic}}",
        cases=("C-JOIN-01", "C-COMMIT-06"),
    )
    assert done.returncode == 0, done.stdout
    assert "client: 1 passed, 0 failed, 1 skipped, 0 unknown" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say which client: one of --client, --command and --application"),
        (["--client", "kafka.js"], "no client is called 'kafka.js': use one of java, "),
        (["--client", "aiokafka", "--command", "x"], "say which client: one of "),
        (["--command", " "], "--command is empty: give a program"),
        (["--client", "aiokafka", "--case", "C-JOIN-99"], "no case 'C-JOIN-99'"),
        (
            ["--client", "aiokafka", "--jobs", "0"],
            "invalid value for '--jobs': Input should be greater than or equal to 1",
        ),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], complaint: str) -> None:
    """Each says what is possible."""
    done = run_here("clients", *arguments, command=main)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_program_that_is_not_there_is_unknown() -> None:
    """The case says so, not a traceback."""
    done = judged("--command", "/no/such/program", cases=("C-JOIN-01",))
    assert done.returncode == 1
    assert "/no/such/program: No such file or directory" in done.stdout


def test_each_case_is_of_a_requirement() -> None:
    """Ids are those of the cases on our own ports, or of a requirement with its own source."""
    known = {case.requirement.requirement_id for case in all_client_cases()}
    cases = all_wire_cases()
    assert len({case.case_id for case in cases}) == len(cases)
    found = {case.requirement.requirement_id for case in cases}
    assert len(found & known) >= 30
    assert all(each.startswith("C-WIRE-") for each in found - known)
    assert all(case.requirement.title and case.requirement.sources for case in cases)


@pytest.mark.property
@given(
    errors=st.lists(st.sampled_from([*ErrorCode][1:20]), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 40), max_size=20),
)
def test_recorder_takes_bytes_in_any_pieces(errors: list[ErrorCode], cuts: list[int]) -> None:
    """Requests and answers are matched however the sockets cut them."""
    recorder, connection = Recorder(), object()
    recorder.opened(connection, None, ("127.0.0.1", 9092))
    asked, answered = b"", b""
    for number, error in enumerate(errors):
        beat = HeartbeatRequest("g", number, f"member-{number}")
        asked += framed(request_writer(ApiKey.HEARTBEAT, 4)(number, "c", beat))
        answer = HeartbeatResponse(error_code=error)
        answered += framed(response_writer(ApiKey.HEARTBEAT, 4)(number, answer))
    for piece in pieces(asked, cuts):
        recorder.received(connection, piece)
    for piece in pieces(answered, cuts):
        recorder.sent(connection, piece)
    seen = recorder.exchanges["g"]
    assert [(each.generation, each.error) for each in seen] == [
        (number, error.name) for number, error in enumerate(errors)
    ]
    assert [each.number for each in seen] == list(range(1, len(errors) + 1))


def framed(frame: bytes) -> bytes:
    """A frame with its length."""
    return len(frame).to_bytes(4, "big") + frame


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes in pieces of these lengths, and the rest."""
    found = []
    for cut in cuts:
        found.append(data[:cut])
        data = data[cut:]
    return [*filter(None, found), *([data] if data else [])]
