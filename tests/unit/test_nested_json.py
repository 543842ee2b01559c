"""JSON that is nested a million deep is refused in one line, whichever file or peer brings it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from coordinator_sim.disk.inventory import inventory_of
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.harness.assignor_cases import parse_case
from coordinator_sim.harness.lines import Lines
from coordinator_sim.runs.run_directory import read_lines, read_run
from coordinator_sim.sim.scenario.files import load_plan, load_scenario
from coordinator_sim.trace.schema import EventRow
from coordinator_sim_conformance.differ.explained import read_explanations
from coordinator_sim_conformance.differ.scripts import read_script
from coordinator_sim_conformance.verdicts.results import read_result

DEEP = b"[" * 1_000_000
IN_UNKNOWN_FIELD = b'{"unknown": ' + DEEP

READERS: list[Callable[[Path], object]] = [
    load_scenario,
    load_plan,
    lambda path: read_run(path.parent),
    lambda path: list(read_lines(path, EventRow)),
    read_explanations,
    read_script,
    read_result,
    lambda path: inventory_of(path.read_bytes()),
    lambda path: parse_case(path.read_bytes()),
]


@pytest.mark.parametrize("data", [DEEP, IN_UNKNOWN_FIELD], ids=["whole", "unknown field"])
@pytest.mark.parametrize("read", READERS)
def test_a_file_nested_too_deeply_is_refused(
    tmp_path: Path, read: Callable[[Path], object], data: bytes
) -> None:
    """No reader lets the interpreter's own error through."""
    path = tmp_path / "run.json"
    path.write_bytes(data)
    with pytest.raises(CoordinatorSimError):
        read(path)


def test_a_line_nested_too_deeply_is_answered() -> None:
    """The process that reads lines goes on with the next one."""
    answer = msgspec.json.decode(Lines().answer_line(DEEP))
    assert answer["error"].startswith("not JSON")
