"""Exactly-once source tasks: what is fenced before they start, and what keeps them from it."""

import pytest

from coordinator_sim.connect import effects
from coordinator_sim.connect.herding.requests import ErrorKind, FenceZombies, Outcome, RequestFailed
from coordinator_sim.connect.rest.signatures import RequestSignature, sign
from coordinator_sim.connect.stores.json_converter import from_json
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.client_cases.worker_bench import CONFIGS, STATUSES, HerderBench

X0 = ConnectorTaskId("x", 0)
TASK = "status-task-x-0"


def _bench(class_name: str = "Source", **settings: str) -> HerderBench:
    bench = HerderBench(exactly_once_source_support="enabled", **settings)
    bench.write_connector("x", **{"connector.class": class_name, "tasks.max": "2", "tasks": "1"})
    bench.write_tasks("x", "")
    return bench


def _leader(class_name: str = "Source") -> HerderBench:
    bench = _bench(class_name)
    bench.leads = True
    bench.start()
    bench.run(1_000)
    return bench


def _follower() -> HerderBench:
    """A follower that is given connector x and its task."""
    bench = _bench()
    bench.assign("x", X0)
    return bench


def _fence(bench: HerderBench, connector: str = "x") -> Outcome:
    key = bench.state.session_key
    mac = sign(key.key if key else b"", b"", "HmacSHA256")
    signature = RequestSignature(b"", "HmacSHA256", mac)
    answer = bench.ask(FenceZombies(connector=connector, signature=signature))
    bench.run(1_000)
    return answer.result()


def _status(bench: HerderBench) -> tuple[str, str]:
    """State and trace of the task, as last written."""
    written = [from_json(value) for key, value in bench.records(STATUSES) if key == TASK]
    last = written[-1] if written else {}
    assert isinstance(last, dict)
    return str(last.get("state")), str(last.get("trace"))


@pytest.mark.parametrize(
    ("class_name", "connector", "kind"),
    [("Source", "unknown", ErrorKind.NOT_FOUND), ("Sink", "x", ErrorKind.BAD_REQUEST)],
)
def test_only_known_sources_are_fenced(class_name: str, connector: str, kind: ErrorKind) -> None:
    """Anything else is refused."""
    outcome = _fence(_leader(class_name), connector)
    assert isinstance(outcome, RequestFailed)
    assert outcome.kind is kind


def test_a_sink_task_needs_no_fencing() -> None:
    """The task's own consumer group fences it."""
    bench = _leader("Sink")
    assert _status(bench)[0] == "RUNNING"
    assert len(bench.all_asked(effects.InitTransactions)) == 1  # the leader's own


def test_what_has_been_fenced_is_not_fenced_again() -> None:
    """With the count written after the tasks there is nothing to do, and nothing is written."""
    bench = _leader()
    before = len(bench.records(CONFIGS))
    assert not isinstance(_fence(bench), RequestFailed)
    assert len(bench.records(CONFIGS)) == before


def test_a_round_that_the_brokers_refuse_fails() -> None:
    """The brokers' error is the cause; the next request begins another round."""
    bench = _leader()
    bench.state.work.connectors.clear()
    bench.failures[effects.FenceProducers] = ["ClusterAuthorizationException"] * 2
    bench.write_tasks("x", "a", "b")
    bench.run(1_000)
    state, trace = _status(bench)
    assert state == "FAILED"
    assert "ClusterAuthorizationException" in trace
    assert not isinstance(_fence(bench), RequestFailed)


def test_a_followers_task_has_the_leader_fence() -> None:
    """PUT to the leader, then the producer, then the task."""
    bench = _follower().start()
    call = bench.all_asked(effects.CallHttp)[0]
    assert (call.request.method, call.request.target) == ("PUT", "/connectors/x/fence")
    (producer,) = bench.all_asked(effects.InitTransactions)
    assert producer.transactional_id == "connect-x-0"
    assert _status(bench)[0] == "RUNNING"


def test_a_followers_task_fails_with_what_the_leader_answers() -> None:
    """The message of the refusal is in the trace."""
    bench = _follower()
    bench.http = [effects.HttpResponse(status=500, body=b'{"error_code":500,"message":"no luck"}')]
    bench.start()
    assert _status(bench) == ("FAILED", "ConnectException: no luck")
    assert bench.all_asked(effects.StartTask) == []


def test_a_follower_that_knows_no_leader_fails_its_task() -> None:
    """Without a URL nobody can be asked."""
    bench = _bench()
    bench.assign("x", X0, leader_url="")
    bench.start()
    state, trace = _status(bench)
    assert state == "FAILED"
    assert "leader's URL" in trace


def test_a_producer_that_cannot_begin_fails_its_task() -> None:
    """The name of the exception is the trace."""
    bench = _follower()
    bench.failures[effects.InitTransactions] = ["TransactionalIdAuthorizationException"]
    bench.start()
    assert _status(bench) == ("FAILED", "TransactionalIdAuthorizationException")


def test_a_task_of_an_old_generation_does_not_start() -> None:
    """New configurations came while its producer began: it is stopped before it runs."""
    bench = _follower()
    bench.held.add(effects.InitTransactions)
    bench.start()
    bench.write_tasks("x", "new")
    bench.release_held(effects.InitTransactions)
    assert _status(bench)[0] == "UNASSIGNED"
    assert bench.all_asked(effects.StartTask) == []


def test_a_task_that_was_taken_away_does_not_start() -> None:
    """The task is stopped while its producer begins, and looked up after that."""
    bench = _follower()
    bench.held.add(effects.InitTransactions)
    bench.start()
    bench.state.held().tasks.clear()
    bench.release_held(effects.InitTransactions)
    state, trace = _status(bench)
    assert state == "FAILED"
    assert "already been revoked" in trace


def test_a_task_that_is_stopped_while_it_is_fenced_begins_no_producer() -> None:
    """A producer that begins late could fence a later generation."""
    bench = _follower()
    bench.held.add(effects.CallHttp)
    bench.start()
    bench.state.work.tasks[X0].stop()
    bench.release_held(effects.CallHttp)
    assert bench.all_asked(effects.InitTransactions) == []
