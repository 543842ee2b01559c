"""What records of the config topic set in motion, besides what the cases of the suite show."""

import pytest

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import InitTransactions, StopConnector, TargetState
from coordinator_sim.connect.herding.requests import CheckHealth, Done
from coordinator_sim.connect.stores.config_records import RestartRequest
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim_conformance.client_cases.worker_bench import CONFIGS, HerderBench

X0 = ConnectorTaskId("x", 0)


def _owner(**settings: str) -> HerderBench:
    """A follower that runs connector x and its one task."""
    bench = HerderBench(**settings)
    bench.write_connector("x")
    bench.write_tasks("x", "")
    version = {"eager": 0, "compatible": 1}.get(settings.get("connect_protocol", ""), 2)
    bench.assign("x", X0, version=version)
    bench.start()
    bench.done()
    return bench


def test_an_eager_worker_leaves_all_changes_to_the_rebalance() -> None:
    """New tasks: everything stops before the join, and starts again after it."""
    bench = _owner(connect_protocol="eager")
    bench.write_target_state("x", TargetState.PAUSED)
    bench.write_tasks("x", "new")
    bench.assign("x", X0, version=0)
    assert bench.done() == ["stop c:x", "stop t:x-0"]
    bench.write_target_state("x", TargetState.STARTED)
    bench.settle()
    assert bench.done() == ["start c:x", "start t:x-0"]


def test_an_eager_worker_restarts_and_pauses_without_a_rebalance() -> None:
    """What concerns one connector alone is done where it runs."""
    bench = _owner(connect_protocol="eager")
    bench.write_connector("x", value="new")
    bench.write_target_state("x", TargetState.PAUSED)
    bench.settle()
    assert bench.done() == ["stop c:x", "paused c:x"]
    assert len(bench.sent(JoinGroupRequest)) == 1


def test_a_removed_connector_is_a_rebalance_and_an_unknown_one_is_not() -> None:
    """The tombstone of what nobody knew changes nothing."""
    bench = _owner()
    bench.write(CONFIGS, "connector-unknown", None)
    bench.settle()
    assert len(bench.sent(JoinGroupRequest)) == 1
    bench.write(CONFIGS, "connector-x", None)
    bench.settle()
    assert len(bench.sent(JoinGroupRequest)) == 2


def test_stopped_tasks_start_again_only_if_they_are_given_again() -> None:
    """After new configurations the assignment decides."""
    bench = _owner()
    bench.write_tasks("x", "new")
    bench.settle()
    assert bench.done() == ["stop t:x-0"]
    bench.assign(revoked_tasks=(X0,))
    bench.assign()
    assert bench.done() == []


def test_of_two_restart_requests_the_one_that_does_more_counts() -> None:
    """Whichever comes first."""
    bench = _owner()
    for first, second in ((True, False), (False, True)):
        bench.write(CONFIGS, "restart-connector-x", _restart(include_tasks=first))
        bench.write(CONFIGS, "restart-connector-x", _restart(include_tasks=second))
        bench.settle()
        assert bench.done() == ["stop c:x", "stop t:x-0", "start c:x", "start t:x-0"]


def _restart(*, include_tasks: bool) -> bytes:
    text = str(include_tasks).lower()
    return f'{{"include-tasks":{text},"only-failed":false}}'.encode()


def test_a_restart_of_what_nobody_has_a_status_of_is_skipped() -> None:
    """A pending restart of a connector without a status is skipped."""
    bench = _owner()
    bench.state.pending_restart_requests["y"] = RestartRequest("y", include_tasks=True)
    assert bench.answer(CheckHealth()) == Done()
    assert bench.done() == []


def test_levels_of_loggers_are_kept() -> None:
    """The last one of a namespace counts."""
    bench = _owner()
    for level in ("DEBUG", "WARN"):
        bench.write(CONFIGS, "logger-cluster-org.apache", f'{{"level":"{level}"}}'.encode())
    bench.settle()
    assert bench.state.logger_levels == {"org.apache": "WARN"}


@pytest.mark.parametrize(("ttl_ms", "expires_ms"), [("0", FOREVER), ("60000", 61_000)])
def test_a_key_expires_unless_keys_never_do(ttl_ms: str, expires_ms: int) -> None:
    """By its own time of creation."""
    bench = _owner(inter_worker_key_ttl_ms=ttl_ms)
    value = b'{"key":"AAAA","algorithm":"HmacSHA256","creation-timestamp":1000}'
    bench.write(CONFIGS, "session-key", value)
    bench.settle()
    assert bench.state.key_expiration_ms == expires_ms


def test_a_leader_that_cannot_claim_its_privilege_tries_until_it_can() -> None:
    """First by the listener, then tick by tick with the sleeps of a reader that is behind."""
    bench = HerderBench(exactly_once_source_support="preparing")
    bench.leads = True
    bench.failures[InitTransactions] = ["TimeoutException"] * 2
    bench.start()
    assert bench.state.fenced_from_config_topic
    bench.run(6_000)
    assert not bench.state.fenced_from_config_topic
    assert len(bench.all_asked(InitTransactions)) == 3


def test_a_poll_timeout_leaves_what_the_thread_did() -> None:
    """The stage of the thread is kept, so that the log can say what took so long."""
    bench = _owner(rebalance_timeout_ms="4000")
    bench.held.add(StopConnector)
    bench.write_connector("x", value="new")
    bench.settle()
    bench.run(4_500)
    stage = bench.state.poll_timeout_stage
    assert stage is not None
    assert stage.description == "stopping connector x"
    reasons = [member.reason for each in bench.sent(LeaveGroupRequest) for member in each.members]
    assert reasons == ["worker poll timeout has expired."]
