"""The herder from its start to its end, with its topics, its group and its work around it."""

import pytest

from coordinator_sim.clients.effects import Closed
from coordinator_sim.connect import effects
from coordinator_sim.connect.herding import requests
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim_conformance.client_cases.worker_bench import CONFIGS, STATUSES, HerderBench

X0, X1 = ConnectorTaskId("x", 0), ConnectorTaskId("x", 1)
STATUS_KEYS = ("status-task-x-0", "status-task-x-1")
X = {"connector.class": "Source", "name": "x", "tasks.max": "2"}


def _leader(**settings: str) -> HerderBench:
    """A leader without connectors."""
    bench = HerderBench(**settings)
    bench.leads = True
    return bench.start()


def _owner() -> HerderBench:
    """A leader that runs connector x and its two tasks."""
    bench = _leader()
    bench.answer(requests.PutConnectorConfig(connector="x", config=X))
    bench.run(1_000)
    bench.done()
    return bench


def _keys(bench: HerderBench) -> list[str]:
    return [key for key, _ in bench.records(CONFIGS)]


def _states(bench: HerderBench) -> list[str]:
    answer = bench.answer(requests.GetConnectorStatus("x"))
    assert isinstance(answer, requests.ConnectorStateInfo)
    return [answer.connector.state, *(task.state for task in answer.tasks)]


def test_a_new_connector_is_started_and_then_its_tasks() -> None:
    """The connector's record is a rebalance, its tasks' commit another; statuses tell of both."""
    bench = _leader()
    assert bench.endings == [effects.Ready()]
    created = bench.answer(requests.PutConnectorConfig(connector="x", config=X))
    assert isinstance(created, requests.Created)
    assert created.created
    bench.run(1_000)
    assert bench.done() == ["start c:x", "start t:x-0", "start t:x-1"]
    assert _keys(bench) == ["session-key", "connector-x", "task-x-0", "task-x-1", "commit-x"]
    assert len(bench.sent(JoinGroupRequest)) == 3
    assert _states(bench) == ["RUNNING", "RUNNING", "RUNNING"]


def test_a_deleted_connector_is_stopped_and_its_statuses_are_purged() -> None:
    """The leader tells its own worker to give up the work, and forgets the statuses last."""
    bench = _owner()
    bench.answer(requests.DeleteConnector("x"))
    bench.run(1_000)
    assert bench.done() == ["stop c:x", "stop t:x-0", "stop t:x-1"]
    tombstones = [key for key, value in bench.records(STATUSES) if value is None]
    # The cache still has the tasks when tasks are looked at: their tombstones are written twice.
    assert tombstones == [*STATUS_KEYS, "status-connector-x", *STATUS_KEYS]


def test_pause_and_resume_tell_the_work_and_write_statuses() -> None:
    """Neither is a rebalance; what is resumed is asked for its tasks, which are the same."""
    bench = _owner()
    joins = len(bench.sent(JoinGroupRequest))
    bench.answer(requests.PauseConnector("x"))
    assert _states(bench) == ["PAUSED", "PAUSED", "PAUSED"]
    bench.answer(requests.ResumeConnector("x"))
    assert _states(bench) == ["RUNNING", "RUNNING", "RUNNING"]
    assert bench.done() == ["paused c:x", "started c:x"]
    bench.run(1_000)
    assert len(bench.sent(JoinGroupRequest)) == joins


def test_stop_takes_the_tasks_away_first() -> None:
    """An empty commit is a rebalance that stops the tasks; the connector stays, as STOPPED."""
    bench = _owner()
    bench.answer(requests.StopConnectorRequest("x"))
    bench.run(1_000)
    assert _keys(bench)[-2:] == ["commit-x", "target-state-x"]
    assert bench.done("stop") == ["stop t:x-0", "stop t:x-1"]
    assert _states(bench) == ["STOPPED"]


def test_a_failed_task_is_restarted_by_request() -> None:
    """FAILED with its trace; a restart of what has failed leaves the rest alone."""
    bench = _owner()
    bench.state.work.task_failed(X1, "RuntimeException: no")
    bench.settle()
    assert _states(bench) == ["RUNNING", "RUNNING", "FAILED"]
    plan = bench.answer(
        requests.RestartConnectorAndTasks(connector="x", only_failed=True, include_tasks=True)
    )
    assert isinstance(plan, requests.ConnectorStateInfo)
    assert [task.state for task in plan.tasks] == ["RUNNING", "RESTARTING"]
    bench.run(1_000)
    assert bench.done() == ["start t:x-1"]
    assert _states(bench) == ["RUNNING", "RUNNING", "RUNNING"]


def test_a_follower_sends_task_configurations_to_the_leader_until_they_are_taken() -> None:
    """500 and 409 are tried again, 250 ms and then twice as long; 204 ends it."""
    bench = HerderBench()
    bench.write_connector("x", value="new")
    bench.http = [
        effects.HttpResponse(status=500),
        effects.HttpResponse(status=409),
        effects.HttpResponse(status=204),
    ]
    bench.assign("x")
    bench.start()
    assert len(bench.all_asked(effects.CallHttp)) == 1
    bench.run(249)
    assert len(bench.all_asked(effects.CallHttp)) == 1
    bench.run(1)
    assert len(bench.all_asked(effects.CallHttp)) == 2
    bench.run(500)
    calls = bench.all_asked(effects.CallHttp)
    assert len(calls) == 3
    assert (calls[0].url, calls[0].request.method, calls[0].request.target) == (
        "http://leader:8083",
        "POST",
        "/connectors/x/tasks",
    )
    bench.run(100_000)
    assert len(bench.all_asked(effects.CallHttp)) == 3


def test_a_paused_connector_starts_neither_itself_nor_its_tasks() -> None:
    """Statuses are PAUSED; the resumption starts them."""
    bench = HerderBench()
    bench.write_connector("x")
    bench.write_target_state("x", effects.TargetState.PAUSED)
    bench.write_tasks("x", "")
    bench.assign("x", X0)
    bench.start()
    assert bench.done() == []
    assert _states(bench) == ["PAUSED", "PAUSED"]
    bench.answer(requests.ResumeConnector("x"))
    assert bench.done() == ["start c:x", "start t:x-0"]
    assert _states(bench) == ["RUNNING", "RUNNING"]


def test_a_class_that_is_not_installed_fails_with_a_trace() -> None:
    """The connector and its task are FAILED; the worker goes on."""
    bench = HerderBench()
    bench.write_connector("x", **{"connector.class": "Lost"})
    bench.write_tasks("x", "")
    bench.assign("x", X0)
    bench.start()
    assert _states(bench) == ["FAILED", "FAILED"]
    assert bench.endings == [effects.Ready()]


def test_stop_ends_the_work_refuses_requests_and_leaves_the_group() -> None:
    """Work first, then the stores, then LeaveGroup; what is still queued is refused."""
    bench = _owner()
    bench.herder.stop()
    late = bench.herder.submit(requests.GetConnectorInfo("x"))
    bench.run(1_000)
    assert bench.done() == ["stop c:x", "stop t:x-0", "stop t:x-1"]
    refused = late.result()
    assert isinstance(refused, requests.RequestFailed)
    assert (refused.kind, refused.message) == (
        requests.ErrorKind.CONNECT,
        "Worker is shutting down",
    )
    assert len(bench.sent(LeaveGroupRequest)) == 1
    assert bench.endings == [effects.Ready(), Closed()]


def test_a_worker_whose_topic_is_not_compacted_dies() -> None:
    """What escapes the start ends the process."""
    bench = HerderBench()
    bench.make_topic(CONFIGS, configs={"cleanup.policy": "delete"})
    bench.start()
    assert isinstance(bench.endings[0], effects.Died)
    assert "cleanup.policy" in bench.endings[0].reason


@pytest.mark.parametrize("protocol", ["eager", "compatible", "sessioned"])
def test_an_unknown_connector_is_not_found(protocol: str) -> None:
    """In every protocol alike."""
    bench = _leader(connect_protocol=protocol)
    answer = bench.answer(requests.GetConnectorInfo("x"))
    assert isinstance(answer, requests.RequestFailed)
    assert answer.status == 404


def test_reads_and_restarts_are_refused_while_a_rebalance_is_due() -> None:
    """What is known of owners is about to change."""
    bench = HerderBench()
    bench.write_connector("x")
    bench.assign("x")
    bench.start()
    for request in (requests.GetConnectorInfo("x"), requests.RestartConnector("x")):
        bench.assign("x")
        bench.state.needs_reconfig_rebalance = True
        answer = bench.answer(request)
        assert isinstance(answer, requests.RequestFailed)
        assert answer.kind is requests.ErrorKind.REBALANCE_NEEDED


def test_a_thread_that_sleeps_is_interrupted_when_patience_is_over() -> None:
    """An eager worker that stays away for five minutes ends after 23 seconds all the same."""
    bench = HerderBench(connect_protocol="eager")
    bench.assign()
    bench.start()
    bench.hold(CONFIGS)
    bench.write_connector("x")
    bench.rebalance("x")
    bench.run(3_000)
    bench.herder.stop()
    bench.run(22_999)
    assert bench.endings == [effects.Ready()]
    bench.run(1)
    assert bench.endings == [effects.Ready(), Closed()]


def test_a_thread_that_hangs_is_left_behind_in_the_end() -> None:
    """Reading the topics at the start cannot be interrupted; the process ends without it."""
    bench = HerderBench()
    bench.held.add(effects.CreateTopic)
    bench.start()
    bench.herder.stop()
    bench.run(46_000)
    assert bench.endings == [Closed()]


def test_a_write_that_fails_in_the_middle_of_a_stop_is_told() -> None:
    """The tasks are taken away; the target state could not be written."""
    bench = _owner()
    bench.held.add(effects.Produce)
    stopped = bench.ask(requests.StopConnectorRequest("x"))
    bench.run(30_000)
    outcome = stopped.result()
    assert isinstance(outcome, requests.RequestFailed)
    assert outcome.kind is requests.ErrorKind.CONNECT


def test_membership_that_fails_for_good_ends_the_process() -> None:
    """The exception is the reason; the services are stopped."""
    bench = HerderBench()
    bench.join_error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    bench.start()
    assert bench.endings == [effects.Died("GroupAuthorizationException")]
