"""Connectors and tasks of one worker: what their ends, failures and pauses tell others."""

import pytest

from coordinator_sim.connect import effects
from coordinator_sim.connect.exceptions import ConfigException, ConnectException
from coordinator_sim.connect.herding.refusals import TooManyTasksException
from coordinator_sim.connect.herding.requests import PluginFailure
from coordinator_sim.connect.herding.running_work import check_tasks_max, tasks_max
from coordinator_sim.connect.stores.json_converter import from_json
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.client_cases.worker_bench import STATUSES, HerderBench

X0 = ConnectorTaskId("x", 0)


def _owner(**config: str) -> HerderBench:
    """A follower that runs connector x and its one task."""
    bench = HerderBench()
    bench.write_connector("x", **config)
    bench.write_tasks("x", "")
    bench.assign("x", X0)
    return bench


def _states(bench: HerderBench, key: str) -> list[str]:
    """The states written under a key, oldest first; `-` for a tombstone."""
    states = []
    for each, value in bench.records(STATUSES):
        if each == key:
            parsed = from_json(value)
            states.append(str(parsed["state"]) if isinstance(parsed, dict) else "-")
    return states


CONNECTOR, TASK = "status-connector-x", "status-task-x-0"


def test_a_task_that_does_not_stop_is_cancelled_and_its_status_stays() -> None:
    """After the graceful timeout nobody waits; what the task does later is told to nobody."""
    bench = _owner().start()
    bench.held.add(effects.StopTask)
    began_ms = bench.now_ms + 3_000
    bench.rebalance(revoked_tasks=(X0,))
    bench.run(4_999)
    assert "cancel t:x-0" not in bench.done()
    bench.assign()
    bench.run(1)
    assert (began_ms + 5_000, "cancel t:x-0") in bench.work
    bench.release_held(effects.StopTask)
    assert _states(bench, TASK) == ["RUNNING"]


def test_a_connector_that_does_not_stop_is_unassigned_all_the_same() -> None:
    """The connector's status is written when the wait ends, and not again when it has stopped."""
    bench = _owner().start()
    bench.held.add(effects.StopConnector)
    bench.rebalance(revoked_connectors=("x",))
    bench.assign()
    bench.run(5_000)
    assert _states(bench, CONNECTOR) == ["RUNNING", "UNASSIGNED"]
    bench.release_held(effects.StopConnector)
    assert _states(bench, CONNECTOR) == ["RUNNING", "UNASSIGNED"]


def test_all_tasks_of_one_stop_share_the_timeout() -> None:
    """A worker that ends waits five seconds for its tasks together, not for each."""
    bench = HerderBench()
    bench.write_connector("x", **{"tasks.max": "3"})
    bench.write_tasks("x", "", "", "")
    bench.assign(*(ConnectorTaskId("x", number) for number in range(3)))
    bench.start()
    bench.held.add(effects.StopTask)
    bench.herder.stop()
    bench.run(5_000)
    assert bench.done("cancel") == ["cancel t:x-0", "cancel t:x-1", "cancel t:x-2"]


def test_a_task_stopped_while_it_starts_stops_after_its_start() -> None:
    """The start cannot be interrupted; RUNNING is written, then UNASSIGNED."""
    bench = _owner()
    bench.held.add(effects.StartTask)
    bench.start()
    bench.rebalance(revoked_tasks=(X0,))
    assert bench.done("stop") == []
    bench.release_held(effects.StartTask)
    assert bench.done("stop") == ["stop t:x-0"]
    assert _states(bench, TASK) == ["RUNNING", "UNASSIGNED"]


def test_a_paused_task_ends_without_having_started() -> None:
    """PAUSED, then UNASSIGNED; the driver never hears of it."""
    bench = HerderBench()
    bench.write_connector("x")
    bench.write_target_state("x", effects.TargetState.PAUSED)
    bench.write_tasks("x", "")
    bench.assign("x", X0)
    bench.start()
    bench.rebalance(revoked_tasks=(X0,))
    assert bench.done() == []
    assert _states(bench, TASK) == ["PAUSED", "UNASSIGNED"]


def test_a_task_paused_while_it_starts_is_paused_after_its_start() -> None:
    """RUNNING first, as the start was under way."""
    bench = _owner()
    bench.held.add(effects.StartTask)
    bench.start()
    bench.write_target_state("x", effects.TargetState.PAUSED)
    bench.settle()
    bench.release_held(effects.StartTask)
    assert _states(bench, TASK) == ["RUNNING", "PAUSED"]


def test_work_that_cannot_be_started_has_failed() -> None:
    """What the driver answers is the trace; a task that has failed needs no stop."""
    bench = _owner()
    bench.failures = {effects.StartTask: ["boom"], effects.StartConnector: ["bang"]}
    bench.start()
    assert _states(bench, TASK) == ["FAILED"]
    assert _states(bench, CONNECTOR) == ["FAILED"]
    bench.rebalance(revoked_tasks=(X0,), revoked_connectors=("x",))
    assert bench.done() == []
    assert _states(bench, TASK) == ["FAILED"]


def test_a_failure_of_what_is_being_stopped_is_not_told() -> None:
    """What is being stopped ends as UNASSIGNED; later failures of what is gone change nothing."""
    bench = _owner().start()
    bench.held.add(effects.StopTask)
    bench.rebalance(revoked_tasks=(X0,))
    bench.state.work.task_failed(X0, "late")
    bench.release_held(effects.StopTask)
    bench.state.work.task_failed(X0, "later")
    bench.state.work.connector_failed("unknown", "never")
    bench.settle()
    assert _states(bench, TASK) == ["RUNNING", "UNASSIGNED"]


def test_an_error_that_a_connector_raises_is_only_written_down() -> None:
    """The connector's status is FAILED, and it runs on."""
    bench = _owner().start()
    bench.state.work.connector_failed("x", "java.lang.RuntimeException: no")
    bench.settle()
    assert _states(bench, CONNECTOR) == ["RUNNING", "FAILED"]
    assert bench.state.work.is_running("x")


def test_a_change_that_has_not_begun_is_preempted() -> None:
    """The second target state wins; the first caller is told."""
    bench = _owner()
    bench.held.add(effects.StartConnector)
    bench.start()
    first = bench.state.work.set_target_state("x", effects.TargetState.PAUSED)
    second = bench.state.work.set_target_state("x", effects.TargetState.STARTED)
    bench.release_held(effects.StartConnector)
    assert first is not None
    assert second is not None
    assert "pre-empted" in str(first.error)
    assert second.result() is effects.TargetState.STARTED


def test_a_failed_connector_can_only_be_stopped() -> None:
    """Other target states are refused until then."""
    bench = _owner()
    bench.failures = {effects.StartConnector: ["bang"]}
    bench.start()
    refused = bench.state.work.set_target_state("x", effects.TargetState.STARTED)
    bench.settle()
    assert refused is not None
    assert "since it has failed" in str(refused.error)
    stopped = bench.state.work.set_target_state("x", effects.TargetState.STOPPED)
    bench.settle()
    assert stopped is not None
    assert stopped.result() is effects.TargetState.STOPPED
    assert _states(bench, CONNECTOR) == ["FAILED", "STOPPED"]
    again = bench.state.work.set_target_state("x", effects.TargetState.STARTED)
    bench.settle()
    assert again is not None
    assert again.result() is effects.TargetState.STARTED


def test_a_change_of_what_is_about_to_end_is_refused() -> None:
    """The change waited for the start, and the end came first."""
    bench = _owner()
    bench.held.add(effects.StartConnector)
    bench.start()
    bench.state.work.connectors["x"].shutdown()
    change = bench.state.work.set_target_state("x", effects.TargetState.PAUSED)
    bench.release_held(effects.StartConnector)
    assert change is not None
    assert "scheduled for shutdown" in str(change.error)


def test_what_runs_here_already_is_not_started_again() -> None:
    """Both are refused by the worker."""
    bench = _owner().start()
    assert "already exists" in str(
        bench.state.work.start_connector("x", {}, effects.TargetState.STARTED).error
    )
    spec = bench.state.work.tasks[X0].spec
    with pytest.raises(ConnectException, match="already exists"):
        bench.state.work.start_task(spec, effects.TargetState.STARTED, task_count=1)


def test_too_many_tasks_fail_the_connector_and_are_not_tried_again() -> None:
    """The connector is FAILED, the tasks stay as they are."""
    bench = _owner(tasks="2").start()
    assert _states(bench, CONNECTOR) == ["RUNNING", "FAILED"]
    bench.run(100_000)
    assert bench.state.queue.first is None


def test_a_connector_that_raises_is_asked_again_with_growing_pauses() -> None:
    """After 250 ms, 500 ms, 1 s and so on, up to a minute, without end."""
    bench = _owner(tasks="1", value="new")
    bench.plugins.failure = PluginFailure("java.lang.RuntimeException: no tasks today")
    bench.start()
    waits = []
    for _ in range(11):
        first = bench.state.queue.first
        assert first is not None
        waits.append(first.due_ms - bench.now_ms)
        bench.run(waits[-1])
    assert waits == [250 << n for n in range(8)] + [60_000] * 3


def test_more_tasks_than_allowed_pass_where_nobody_minds() -> None:
    """`tasks.max.enforce=false` only warns in Java."""
    config = {"tasks.max": "1", "tasks.max.enforce": "false"}
    check_tasks_max("x", 5, config)
    with pytest.raises(TooManyTasksException, match="5 tasks, which is greater than 1"):
        check_tasks_max("x", 5, {"tasks.max": "1"})


def test_a_number_of_tasks_that_is_none_is_refused() -> None:
    """Written to the topic past all validation, it fails the task instead of the worker."""
    assert tasks_max({}) == 1
    with pytest.raises(ConfigException, match="tasks"):
        tasks_max({"tasks.max": "many"})
    bench = _owner(**{"tasks.max": "many"}).start()
    assert _states(bench, TASK) == ["FAILED"]
