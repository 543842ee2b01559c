"""Endpoints that the suite starts: what becomes of their processes is a verdict of one case."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.endpoints.named import NAMED, Named, Started, Variant
from coordinator_sim_conformance.endpoints.playing import Fleet, asked_by
from coordinator_sim_conformance.endpoints.process import Watchdog, ended_how, started
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.targets.asked import RETENTION_CHECK, misfit

PROGRAM: Final = Path(__file__).parent / "crashing_server.py"
CASES: Final = {case.case_id: case for case in all_cases()}
LIMIT_S: Final = 1.0
"""How long the server of these tests may be silent."""


def start(_shared: Path, folder: Path, settings: Mapping[str, str], profile: str) -> Started:
    """Start the server that ends and hangs."""
    options = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    words = [sys.executable, str(PROGRAM), "serve", "--port", "0", "--no-control"]
    return started([*words, "--profile", profile, *options], folder, address_in)


def address_in(line: str) -> str | None:
    """The address in the line of JSON that `serve` prints."""
    found = re.search(r'"bootstrap":"([^"]+)"', line)
    return found and found[1]


def nothing(_folder: Path) -> None:
    """Prepare nothing."""


CRASHING: Final = Named(
    name="crashing",
    version="1",
    profile="4.4",
    variants=(Variant(name="quick", settings=NAMED["serve:real-time"].variants[0].settings),),
    prepare=nothing,
    start=start,
)


def test_a_process_that_ends_or_hangs_fails_the_case_that_does_it(tmp_path: Path) -> None:
    """The cases beside it keep their verdicts, and later ones have a fresh process."""
    said: list[str] = []
    played = ["HB-002", "DELETE-001", "LIST-001", "COMMIT-001"]
    fleet = Fleet(CRASHING, tmp_path, said.append, hangs_after_s=LIMIT_S)

    endings: dict[str, Ending] = {
        each.case_id: each for each in fleet.play([CASES[name] for name in played], "4.4")
    }

    assert {name: each.verdict.value for name, each in endings.items()} == {
        "HB-002": "passed",
        "DELETE-001": "crashed",
        "LIST-001": "hung",
        "COMMIT-001": "passed",
    }
    assert endings["DELETE-001"].reason == "the broker process ended with SIGABRT"
    assert "the last that the process wrote:" in endings["DELETE-001"].transcript
    assert endings["DELETE-001"].transcript[-1] == "  assertion failed: nobody deletes offsets"
    assert "hangs: no answer to ApiVersions within 1 s" in endings["LIST-001"].reason
    assert any("a process of its own" in each for each in said)


def test_a_process_that_does_not_start_is_one_clear_line(tmp_path: Path) -> None:
    """What it wrote is in the line."""
    command = [sys.executable, "-c", "print('no licence'); raise SystemExit(3)"]

    with (
        pytest.raises(DataError, match="ended with exit code 3: no licence"),
        started(command, tmp_path, address_in),
    ):
        pass


def test_a_stopped_process_hangs_and_is_killed(tmp_path: Path) -> None:
    """One that accepts connections and says nothing does not answer."""
    listen = "import socket,time; s=socket.create_server(('127.0.0.1',0)); "
    tell = 'print(\'"bootstrap":"127.0.0.1:%d"\' % s.getsockname()[1], flush=True); time.sleep(99)'
    with started([sys.executable, "-c", listen + tell], tmp_path, address_in) as server:
        watchdog = Watchdog(server, hangs_after_s=0.2)
        problem = watchdog.asked_problem()
        watchdog.close()
        server.process.wait(10)

    assert problem == "the broker process hangs: no answer to ApiVersions within 0.2 s"
    assert ended_how(server.process) == "ended with SIGKILL"


def test_an_answering_process_has_no_problem(tmp_path: Path) -> None:
    """Asked or not."""
    with start(tmp_path, tmp_path, {}, "4.4") as server:
        watchdog = Watchdog(server, hangs_after_s=LIMIT_S)
        assert (watchdog.problem(), watchdog.asked_problem()) == ("", "")
        server.process.kill()
        server.process.wait(10)
        assert watchdog.problem() == "the broker process ended with SIGKILL"
        watchdog.close()


def test_every_case_that_asks_for_settings_has_a_variant_or_wants_more() -> None:
    """Of Kafka's variants: what is left without one asks for what no variant has."""
    kafka = NAMED["kafka:4.4.0"]
    left = {
        case.case_id
        for case in all_cases()
        if "4.4" in case.requirement.profiles
        and misfit(asked := asked_by(case, "4.4"), kafka.variant_for(asked).has) is not None
    }

    failing_assignor = {"CG-078", "CG-078.later"}
    lingering = {each for each in left if each.startswith("LOG-LINGER")} | {"LOG-TOGETHER"}
    delays = {"INIT-014", "LOAD-INACTIVE.session", "EXPIRE-REFUSED", "CG-INTERVAL"}
    assert left - {"EXPIRE-007"} == failing_assignor | lingering | delays


settings = st.dictionaries(st.sampled_from(["a", "b", RETENTION_CHECK]), st.sampled_from("123"))


@pytest.mark.property
@given(settings, settings)
def test_a_misfit_is_a_setting_that_differs(asked: dict[str, str], found: dict[str, str]) -> None:
    """A broker with exactly what is asked for fits; one that lacks a setting does not."""
    name = misfit(asked, found)

    assert misfit(asked, found | asked) is None
    if name is None:
        assert asked.keys() <= found.keys()
    else:
        assert found.get(name) != asked[name]


def test_the_names_are_in_the_message_for_an_unknown_one() -> None:
    """So that a user sees what there is."""
    done = CliRunner().invoke(app, ["run", "--target", "kafka:1.0.0", "--case", "HB-002"])

    assert isinstance(done.exception, ConfigError)
    assert all(name in str(done.exception) for name in ("'kafka:1.0.0'", "kafka:4.4.0", "kfake"))


def test_librdkafkas_mock_ends_with_sigabrt(tmp_path: Path) -> None:
    """Members whose first protocols differ end the process that the mock lives in."""
    pytest.importorskip("confluent_kafka")
    fleet = Fleet(NAMED["librdkafka-mock"], tmp_path, lambda _: None)

    (ending,) = fleet.play([CASES["PROTO-002"]], "2.8")

    assert (ending.verdict, ending.reason) == (
        Verdict.CRASHED,
        "the broker process ended with SIGABRT",
    )


def test_the_built_in_baseline_is_named_beside_the_exit_code() -> None:
    """No regression is no praise: the last line says what is excused, and how to count it."""
    pytest.importorskip("confluent_kafka")
    words = ["run", "--target", "librdkafka-mock", "--case", "LEAVE-001"]

    excused = CliRunner().invoke(app, words)
    counted = CliRunner().invoke(app, [*words, "--no-baseline"])

    assert (excused.exit_code, counted.exit_code) == (0, 1)
    assert "librdkafka-mock as 2.8: 0 passed, 0 failed" in excused.stdout
    assert excused.stdout.splitlines()[-1] == (
        "exit 0: no regression against the built-in baseline; cases excused by it: 1; "
        "--no-baseline counts them as failures"
    )
    assert "baseline" not in counted.stdout
