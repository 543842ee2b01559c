"""The fixture `kafka_server`: a served cluster in a process of its own, as new for every test."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim_pytest.rules import rule_of

pytest.importorskip("confluent_kafka")
pytest.importorskip("uvicorn")

RunPytest = Callable[..., tuple[int, str]]
ROOT = Path(__file__).resolve().parents[3]

CLIENTS = """
import time
import pytest
from confluent_kafka import Consumer, Producer
from coordinator_sim_pytest import *

def members(kafka_server, count, group="g", topic="t"):
    made = []
    for number in range(count):
        consumer = Consumer({
            "bootstrap.servers": kafka_server.bootstrap, "group.id": group,
            "client.id": f"c{number}", "auto.offset.reset": "earliest",
        })
        consumer.subscribe([topic])
        made.append(consumer)
    for _ in range(400):
        for consumer in made:
            consumer.poll(0.02)
        if all(consumer.assignment() for consumer in made):
            return made
    raise AssertionError(kafka_server.group(group))

def close(consumers):
    for consumer in consumers:
        consumer.close()
"""

FRESH = (
    CLIENTS
    + """
@pytest.mark.parametrize("turn", [1, 2])
def test_everything_is_new(kafka_server, turn):
    with pytest.raises(Exception, match="no group"):
        kafka_server.group("g")
    assert kafka_server.events == []
    kafka_server.create_topic("t", 2)
    consumers = members(kafka_server, 2)
    group = kafka_server.wait_for_group("g", members=2)
    assert group["state"] == "Stable"
    no_double_ownership(kafka_server)
    one_leader(kafka_server)
    converged_within(kafka_server, 10_000)
    close(consumers)

def test_one_process_serves_them_all(kafka_server, kafka_servers):
    assert len(kafka_servers._processes) == 1
    assert kafka_server.control.get("/v1/server")["pid"] > 0

def test_a_clock_that_was_moved_ends_its_process(kafka_server):
    kafka_server.create_topic("t")
    consumers = members(kafka_server, 1)
    kafka_server.set_clock("virtual")
    assert "MEMBER_FAILED" in kafka_server.advance(3_600_000)
    close(consumers)

def test_the_next_test_has_the_wall_clock_again(kafka_server):
    assert kafka_server.control.get("/v1/clock")["clock"] == "wall"
"""
)


LEFT_BEHIND = (
    CLIENTS
    + """
import gc
import weakref
gc.disable()
left = []

class Holder:
    pass

def test_that_leaves_a_client(kafka_server):
    kafka_server.create_topic("t")
    holder = Holder()
    holder.itself, holder.client = holder, members(kafka_server, 1)
    left.append(weakref.ref(holder))

def test_that_is_alone(kafka_server):
    assert left[0]() is None
"""
)


def test_client_that_a_test_left_behind_is_gone_before_the_next(run_pytest: RunPytest) -> None:
    """It would connect again, and make its topics in the next test's cluster."""
    code, output = run_pytest(LEFT_BEHIND)
    assert code == 0, output


def test_every_test_has_a_cluster_as_new(run_pytest: RunPytest) -> None:
    """Groups, topics and trace of the test before are gone; the process is the same."""
    code, output = run_pytest(FRESH)
    assert code == 0, output


ENDLESS = (
    CLIENTS
    + """
import coordinator_sim_pytest.server
from coordinator_sim_pytest.server import ControlRefused

@pytest.mark.kafka_settings({"offsets.retention.check.interval.ms": 1_000})
def test_an_advance_without_end(kafka_server, monkeypatch):
    kafka_server.create_topic("t")
    close(members(kafka_server, 1))
    kafka_server.set_clock("virtual")
    monkeypatch.setattr(coordinator_sim_pytest.server, "PATIENCE_S", 1)
    with pytest.raises(ControlRefused, match="was called off at group time"):
        kafka_server.advance(100_000_000_000)
    with pytest.raises(ControlRefused, match="315576000000"):
        kafka_server.advance(315_576_000_001)
    kafka_server.advance(1)
"""
)


def test_advance_that_does_not_end_is_called_off(run_pytest: RunPytest) -> None:
    """A test hears of it, and its server is free again."""
    code, output = run_pytest(ENDLESS)
    assert code == 0, output


MARKED = (
    CLIENTS
    + """
@pytest.mark.kafka_profile("3.9")
@pytest.mark.kafka_brokers(3)
@pytest.mark.kafka_settings({"group.initial.rebalance.delay.ms": 50})
def test_a_cluster_of_another_kind(kafka_server):
    server = kafka_server.control.get("/v1/server")
    assert server["profile"] == "3.9"
    assert len(kafka_server.bootstrap.split(",")) == 3

SLOW = {"match": {"api": "JoinGroup"}, "action": {"do": "delay", "ms": 700}, "times": 1}

@pytest.mark.kafka_faults(SLOW)
def test_a_fault(kafka_server):
    kafka_server.create_topic("t")
    close(members(kafka_server, 1))
    assert kafka_server.fault_hits(1) == 1

def test_no_fault_any_more(kafka_server):
    assert kafka_server.control.get("/v1/faults") == []

@pytest.mark.kafka_bug("followers-see-members")
def test_a_bug(kafka_server):
    kafka_server.create_topic("t", 2)
    close(members(kafka_server, 2))
    with pytest.raises(AssertionError, match="I4"):
        one_leader(kafka_server)

@pytest.mark.kafka_bug("KAFKA-0")
def test_no_such_bug(kafka_server):
    pass

@pytest.mark.kafka_settings({"no.such.setting": 1})
def test_no_such_setting(kafka_server):
    pass
"""
)


def test_markers_say_what_a_test_wants_of_it(run_pytest: RunPytest) -> None:
    """Profile, brokers, settings, faults, and a bug that the assertions find."""
    code, output = run_pytest(MARKED)
    assert "4 passed, 2 errors" in output, output
    assert code == 1
    assert "no bug 'KAFKA-0' of a served coordinator" in output
    assert "did not come: error: unknown broker setting 'no.such.setting'" in output


FAILING = (
    CLIENTS
    + """
def test_that_fails(kafka_server):
    kafka_server.create_topic("t")
    close(members(kafka_server, 1))
    assert False, "on purpose"

def test_whose_server_is_gone(kafka_server, kafka_servers):
    for process in kafka_servers._processes.values():
        process._process.kill()
    assert False, "on purpose"

def test_has_a_server_again(kafka_server):
    assert kafka_server.events == []
"""
)


def test_a_failed_test_tells_what_its_groups_did(run_pytest: RunPytest) -> None:
    """The trace of the cluster is in its report."""
    code, output = run_pytest(FAILING)
    assert code == 1
    assert "2 failed, 1 passed" in output, output
    assert "the trace cannot be had" in output
    section = output.partition("Kafka trace of kafka_server")[2]
    assert "GROUP_STABLE" in section, output
    assert "LEAVE_REQ" in section


MANY = """
import os
import pytest

@pytest.mark.parametrize("turn", range(8))
def test_where(kafka_server, turn):
    pid = kafka_server.control.get("/v1/server")["pid"]
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {pid}\\n")
"""


def test_one_server_a_worker_under_xdist(
    run_pytest: RunPytest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers share nothing; each keeps its server for all its tests, and ends it."""
    pytest.importorskip("xdist")
    pids = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(pids))
    code, output = run_pytest(MANY, "-p", "xdist.plugin", "-n", "2")
    assert code == 0, output
    seen = {tuple(line.split()) for line in pids.read_text().splitlines()}
    assert len(seen) == len({worker for worker, _ in seen}) == 2
    assert not any(Path("/proc", pid).exists() for _, pid in seen)


def test_a_server_ends_with_whoever_started_it() -> None:
    """Also when that is killed: the server sees the end of its standard input."""
    arguments = ["serve", "--port", "0", "--control-port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "coordinator_sim_pytest.child", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdin.close()
        assert process.wait(10) == 0


def test_rules_are_read_strictly() -> None:
    """A field that no rule has is refused."""
    rule = rule_of({"action": {"do": "close"}})
    assert rule_of(rule) is rule
    with pytest.raises(ConfigError, match="fault rule"):
        rule_of({"action": {"do": "close"}, "macth": {}})
    with pytest.raises(ConfigError, match="no API is called 'Jion'"):
        rule_of({"action": {"do": "close"}, "match": {"api": "Jion"}})
