"""A running endpoint is graded in wall time: by what it offers, and whatever else it serves."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.cli.settings import brokers_for, properties_of
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import Verdict
from coordinator_sim_conformance.targets.choice import addresses_of
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.foreign import play_on
from coordinator_sim_conformance.wire.links import Link
from coordinator_sim_conformance.wire.security import Security

LIMIT_S: Final = 20
QUICK: Final = ("SYNC", "LEAVE", "PROTOCOL", "ADMIN", "OFFSETDELETE", "FINDCOORDINATOR")
"""Areas whose cases hardly wait."""
FRIENDLY: Final = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=100",
    "transaction.partition.verification.enable=false",
)


@contextmanager
def serving(
    directory: Path,
    *settings: str,
    program: tuple[str, ...] = ("-m", "coordinator_sim", "serve"),
    config: Path | None = None,
) -> Iterator[str]:
    """A server in a process of its own, on the wall clock; its address."""
    ready, log = directory / "ready", directory / "log"
    command = [
        *(sys.executable, *program, "--no-control", "--port", "0"),
        *("--ready-file", str(ready)),
        *(word for setting in settings for word in ("--set", setting)),
        *(() if config is None else ("--config", str(config))),
    ]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        deadline = time.monotonic() + LIMIT_S
        while not ready.exists():
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield json.loads(ready.read_text(encoding="utf-8"))["bootstrap"]
        process.terminate()
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()  # One that hangs does not hear of the end.


def graded(bootstrap: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and result of a run."""
    done = CliRunner().invoke(app, ["run", "--bootstrap", bootstrap, "--json", *options])
    assert done.exit_code in {0, 1}, done.output
    result: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, result


def by_verdict(result: dict[str, Any], verdict: str) -> dict[str, str]:
    """Ids and reasons of the cases that ended so."""
    return {
        each["case_id"]: each["reason"] for each in result["endings"] if each["verdict"] == verdict
    }


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that takes short sessions and does not delay a first generation."""
    with serving(tmp_path_factory.mktemp("friendly"), *FRIENDLY) as bootstrap:
        yield bootstrap


def test_a_correct_endpoint_fails_nothing(friendly: str) -> None:
    """What its settings and the wire allow passes, the rest says why it is left out."""
    areas = [word for area in QUICK for word in ("--area", area)]

    code, result = graded(friendly, *areas)

    assert (code, by_verdict(result, "failed"), by_verdict(result, "unknown")) == (0, {}, {})
    assert len(by_verdict(result, "passed")) > 3 * len(by_verdict(result, "skipped"))
    assert all(by_verdict(result, "skipped").values())
    assert result["target"]["facts"]["group.min.session.timeout.ms"] == "100"


def test_nothing_of_a_run_is_left_behind(friendly: str) -> None:
    """Groups and topics of the run are removed."""
    graded(friendly, "--case", "DELETE-015", "--case", "LIST-001")
    link = Link(addresses_of(friendly)[0], Security())
    try:
        groups = link.ask("ListGroups", 0, {})["groups"]
        topics = link.ask("Metadata", 1, {"topics": None})["topics"]
    finally:
        link.close()

    assert groups == []
    assert [each["name"] for each in topics if each["name"].startswith("conformance-")] == []


def test_what_is_declared_decides(friendly: str, tmp_path: Path) -> None:
    """Settings that are declared are believed, and a declared lack is not played."""
    declared = tmp_path / "theirs.toml"
    declared.write_text(
        'name = "theirs"\n[settings]\n"group.min.session.timeout.ms" = 7000\n'
        '[lacks]\nLIST-001 = "no ListGroups yet"\n',
        encoding="utf-8",
    )

    _, result = graded(
        friendly, "--declared", str(declared), "--case", "LIST-001", "--case", "SYNC-014"
    )

    assert result["target"]["name"] == "theirs"
    assert by_verdict(result, "skipped")["LIST-001"] == "declared: no ListGroups yet"


def test_printed_settings_unlock_cases_and_break_none(tmp_path: Path) -> None:
    """Each case passes on one of the brokers, and is skipped on those that have other values."""
    wanted = {"INIT-002", "ST-005", "ST-016", "CG-145", "CG-145.downgrade", "CG-149", "SG-015"}
    wanted |= {"MAX-001", "JOIN-SESSION", "TXN-007"}
    chosen = [word for case_id in sorted(wanted) for word in ("--case", case_id)]
    passed: set[str] = set()
    for number, broker in enumerate(brokers_for("4.4")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "server.properties").write_text(properties_of(broker), encoding="utf-8")
        with serving(folder, config=folder / "server.properties") as bootstrap:
            exit_code, result = graded(bootstrap, *chosen)
        assert exit_code == 0, result
        passed |= by_verdict(result, "passed").keys()
        assert sum(result["unlocks"].values()) == len(by_verdict(result, "skipped"))

    assert passed == wanted


@pytest.mark.parametrize(
    ("case_id", "verdict", "problem"),
    [
        ("DELETE-001", Verdict.CRASHED, "the endpoint has crashed"),
        ("LIST-001", Verdict.HUNG, "the endpoint hangs"),
    ],
)
def test_case_under_which_an_endpoint_crashes_or_hangs_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case_id: str, verdict: Verdict, problem: str
) -> None:
    """A case that begins later is not played, and blames the one before."""
    monkeypatch.setattr("coordinator_sim_conformance.wire.links._TIMEOUT_S", 2.0)
    monkeypatch.setattr("coordinator_sim_conformance.targets.foreign.SIDE_BY_SIDE", 1)
    cases = {case.case_id: case for case in all_cases()}
    crashing = ("-m", "tests.over_tcp.crashing_server", "serve")
    with serving(tmp_path, *FRIENDLY, program=crashing) as bootstrap:
        endpoint = Endpoint(addresses_of(bootstrap), Security())
        first, second = play_on(endpoint, [cases[case_id], cases["HB-002"]], "4.4")
        endpoint.close()

    assert (first.case_id, first.verdict) == (case_id, verdict)
    assert first.reason.startswith(problem)
    assert first.frames
    assert second.verdict is Verdict.UNKNOWN
    assert second.reason.startswith(f"not played: {problem}")


def test_an_endpoint_that_goes_away_is_a_verdict(tmp_path: Path) -> None:
    """The other cases end too, each with the reason."""
    with serving(tmp_path, *FRIENDLY) as bootstrap:
        endpoint = Endpoint(addresses_of(bootstrap), Security())
    cases = [case for case in all_cases() if case.case_id in {"HB-002", "LIST-001"}]

    endings = list(play_on(endpoint, cases, "4.4"))
    left = endpoint.clean_up()

    assert [each.verdict for each in endings] == [Verdict.UNKNOWN] * len(cases)
    assert all(each.reason for each in endings)
    assert left == ""
