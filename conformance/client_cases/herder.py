"""The herder of a Connect worker: its reactions to assignments, records and requests."""

from typing import Final

from coordinator_sim.connect import effects
from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.rest.signatures import RequestSignature, sign
from coordinator_sim.connect.stores.config_records import SESSION_KEY_KEY
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.contents import ConnectAssignment, WorkerMetadata
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim_conformance.client_cases.bench import Bench
from coordinator_sim_conformance.client_cases.case import client_case
from coordinator_sim_conformance.client_cases.worker_bench import (
    CONFIGS,
    LEADER_URL,
    STATUSES,
    HerderBench,
)

_X0: Final = ConnectorTaskId("x", 0)
_X: Final = {"connector.class": "Source", "name": "x", "tasks.max": "1"}
_OTHER_URL: Final = "http://other:8083/"
_COUNT_KEY: Final = "tasks-fencing-x"


def _follower(**settings: str) -> HerderBench:
    """Return a follower without an assignment."""
    herder = HerderBench(**settings)
    herder.assign()
    return herder.start()


def _owner(**settings: str) -> HerderBench:
    """Return a follower that runs connector x and its one task."""
    herder = HerderBench(**settings)
    herder.write_connector("x")
    herder.write_tasks("x", "")
    herder.assign("x", _X0)
    herder.start()
    herder.done()
    return herder


def _leader(**settings: str) -> HerderBench:
    """Return a leader, alone, without connectors."""
    herder = HerderBench(**settings)
    herder.leads = True
    return herder.start()


def _leader_of(*values: str, **settings: str) -> HerderBench:
    """Return a leader, alone, that runs connector x with a task of each of these values."""
    herder = HerderBench(**settings)
    herder.leads = True
    herder.write_connector("x", **{"tasks.max": "9", "tasks": str(len(values))})
    herder.write_tasks("x", *values)
    herder.start()
    herder.run(1_000)
    herder.done()
    return herder


def _failure(outcome: requests.Outcome) -> tuple[requests.ErrorKind, str | None] | None:
    """Return kind and forward URL of a failure; None for a success."""
    return (
        (outcome.kind, outcome.forward_url) if isinstance(outcome, requests.RequestFailed) else None
    )


def _status(outcome: requests.Outcome) -> int:
    """Return the HTTP status of an outcome."""
    return outcome.status if isinstance(outcome, requests.RequestFailed) else 200


@client_case("C-HERD-01", "DistributedHerder.RebalanceListener.onAssigned")
def an_assignment_is_handled_by_the_next_tick(bench: Bench) -> None:
    """An assignment wakes its own poll up; work starts in the tick after it."""
    herder = HerderBench()
    herder.write_connector("x")
    herder.assign("x")
    herder.start_services()
    bench.expect("first tick ends", herder.tick(), wanted=True)
    bench.expect("started in it", herder.done("start"), [])
    herder.tick()
    bench.expect("started in the second", herder.done("start"), ["start c:x"])


@client_case("C-HERD-02", "DistributedHerder.handleRebalanceCompleted")
def past_the_assignment_nothing_starts(bench: Bench) -> None:
    """A worker that has read beyond the assignment's offset starts nothing and rejoins."""
    herder = HerderBench()
    herder.write_connector("x")
    herder.assign("x")
    herder.write_connector("y")
    herder.start()
    bench.expect("started", herder.done("start"), [])
    bench.expect("joins", len(herder.sent(JoinGroupRequest)), 2)


@client_case("C-HERD-03", "DistributedHerder.handleRebalanceCompleted")
def behind_the_assignment_the_log_is_read(bench: Bench) -> None:
    """A worker behind the assignment reads to the end of the log before it starts work."""
    herder = _follower()
    herder.hold(CONFIGS)
    herder.write_connector("x")
    herder.rebalance("x")
    herder.run(2_900)
    bench.expect("started while it reads", herder.done("start"), [])
    herder.release(CONFIGS)
    herder.settle()
    bench.expect("started then", herder.done("start"), ["start c:x"])
    bench.expect("leaves", herder.sent(LeaveGroupRequest), [])


@client_case("C-HERD-04", "DistributedHerderTest.testJoinLeaderCatchUpFails")
def an_eager_worker_that_cannot_catch_up_stays_away(bench: Bench) -> None:
    """An eager worker leaves after worker.sync.timeout.ms, and sleeps worker.unsync.backoff.ms."""
    herder = _follower(connect_protocol="eager")
    herder.hold(CONFIGS)
    herder.write_connector("x")
    herder.rebalance("x")
    herder.run(3_000)
    left = herder.sent(LeaveGroupRequest)
    reasons = [member.reason for request in left for member in request.members]
    bench.expect("reasons", reasons, ["taking too long to read the log"])
    herder.release(CONFIGS)
    joins = len(herder.sent(JoinGroupRequest))
    herder.run(299_000)
    bench.expect("joins while it sleeps", len(herder.sent(JoinGroupRequest)), joins)
    herder.run(1_000)
    bench.expect("joins then", len(herder.sent(JoinGroupRequest)), joins + 1)


@client_case("C-HERD-04.2", "DistributedHerder.backoff")
def a_cooperative_worker_gives_up_its_work_in_the_end(bench: Bench) -> None:
    """A cooperative worker tries six times, after longer sleeps, and then stops its work."""
    herder = _owner()
    herder.hold(CONFIGS)
    herder.write_connector("y")
    began_ms = herder.now_ms + 3_000
    herder.rebalance("y")
    # Five sleeps of 30 s by 5, 4, 3, 2 and 1, and 3 s of reading before each and the last.
    sleeps_ms = 6_000 + 7_500 + 10_000 + 15_000 + 30_000
    herder.run(sleeps_ms + 6 * 3_000 - 1)
    bench.expect("stopped before", herder.done("stop"), [])
    herder.run(1)
    seen = [(at_ms - began_ms, text) for at_ms, text in herder.work]
    end_ms = sleeps_ms + 18_000
    bench.expect("stopped", seen, [(end_ms, "stop c:x"), (end_ms, "stop t:x-0")])


@client_case("C-HERD-06", "DistributedHerderTest.testIncrementalCooperativeRebalanceWithDelay")
def the_scheduled_delay_ends_in_a_rejoin(bench: Bench) -> None:
    """When the delay of an assignment is over, the worker rejoins."""
    herder = HerderBench()
    herder.assign(delay_ms=300_000)
    herder.start()
    herder.run(299_999)
    bench.expect("joins before", herder.sent_at(JoinGroupRequest), [0])
    herder.run(1)
    bench.expect("joins", herder.sent_at(JoinGroupRequest), [0, 300_000])


@client_case("C-HERD-08", "DistributedHerderTest.testConnectorConfigUpdate")
def a_known_connector_restarts_at_its_owner(bench: Bench) -> None:
    """A new configuration of a known connector restarts it where it runs; nobody rejoins."""
    owner, other = _owner(), _follower()
    owner.held.add(effects.CallHttp)
    other.write_connector("x")
    other.assign()
    for herder in (owner, other):
        joins = len(herder.sent(JoinGroupRequest))
        herder.write_connector("x", value="new")
        herder.settle()
        bench.expect("joins", len(herder.sent(JoinGroupRequest)), joins)
    bench.expect("at its owner", owner.done(), ["stop c:x", "start c:x"])
    bench.expect("elsewhere", other.done(), [])


@client_case("C-HERD-09", "DistributedHerderTest.testConnectorConfigAdded")
def an_unknown_connector_is_a_rebalance(bench: Bench) -> None:
    """The record of a new connector makes every worker rejoin."""
    for herder in (_follower(), _owner(), _leader()):
        joins = len(herder.sent(JoinGroupRequest))
        herder.write_connector("new")
        herder.settle()
        bench.expect("joins", len(herder.sent(JoinGroupRequest)) > joins, wanted=True)


@client_case("C-HERD-11", "DistributedHerderTest.testConnectorPaused")
def a_pause_is_no_rebalance(bench: Bench) -> None:
    """A target state is applied to what runs of the connector; nobody rejoins."""
    herder = _owner()
    herder.write_target_state("x", effects.TargetState.PAUSED)
    herder.settle()
    bench.expect("done", herder.done(), ["paused c:x"])
    bench.expect("joins", len(herder.sent(JoinGroupRequest)), 1)
    states = [value for key, value in herder.records(STATUSES)[-2:]]
    paused = [b'"state":"PAUSED"' in (value or b"") for value in states]
    bench.expect("statuses", paused, [True, True])


@client_case("C-HERD-12", "DistributedHerderTest.testRestartConnectorRedirectToOwner")
def a_restart_is_sent_to_leader_and_owner(bench: Bench) -> None:
    """A follower names the leader for a restart, the leader the owner."""
    follower = _follower()
    follower.write_connector("x")
    follower.assign()
    seen = _failure(follower.answer(requests.RestartConnector("x")))
    bench.expect("of a follower", seen, (requests.ErrorKind.NOT_LEADER, LEADER_URL))
    leader = HerderBench()
    leader.leads = True
    leader.write_connector("x")
    held = ConnectAssignment(version=2, connectors=("x",))
    leader.others["other"] = WorkerMetadata(
        version=2, url=_OTHER_URL, config_offset=1, allocation=held
    )
    leader.start()
    seen = _failure(leader.answer(requests.RestartConnector("x")))
    bench.expect("of the leader", seen, (requests.ErrorKind.NOT_ASSIGNED, _OTHER_URL))
    owner = _owner()
    bench.expect("of the owner", owner.answer(requests.RestartConnector("x")), requests.Done())
    bench.expect("done there", owner.done(), ["stop c:x", "start c:x"])


@client_case("C-HERD-14", "DistributedHerderTest.testPutTaskConfigsInvalidSignature")
def internal_requests_must_be_signed(bench: Bench) -> None:
    """Task configurations unsigned, badly signed, before a key: 400, 403, 503; V0 and V1: none."""
    leader = _leader_of("")
    key = leader.state.session_key
    body = b"[]"
    good = RequestSignature(body, "HmacSHA256", sign(key.key if key else b"", body, "HmacSHA256"))
    bad = RequestSignature(body, "HmacSHA256", b"wrong")
    other = RequestSignature(body, "HmacSHA1", b"")

    def put(herder: HerderBench, signature: RequestSignature | None) -> int:
        request = requests.PutTaskConfigs(connector="x", configs=(), signature=signature)
        return _status(herder.answer(request))

    bench.expect("unsigned", put(leader, None), 400)
    bench.expect("another algorithm", put(leader, other), 400)
    bench.expect("bad signature", put(leader, bad), 403)
    bench.expect("good signature", put(leader, good), 200)
    bench.expect("no key yet", put(_follower(), good), 503)
    for protocol in ("eager", "compatible"):
        old = _leader_of("", connect_protocol=protocol)
        bench.expect(f"unsigned, {protocol}", put(old, None), 200)


def _keys_written(herder: HerderBench) -> int:
    return sum(key == SESSION_KEY_KEY for key, _ in herder.records(CONFIGS))


@client_case("C-HERD-15", "DistributedHerderTest.testFailedToWriteSessionKey")
def the_leader_rotates_the_key(bench: Bench) -> None:
    """The leader writes a new key when the old one is too old, followers never."""
    leader = _leader(inter_worker_key_ttl_ms="60000")
    bench.expect("at first", _keys_written(leader), 1)
    leader.run(59_999)
    bench.expect("before its end", _keys_written(leader), 1)
    leader.run(1)
    bench.expect("at its end", _keys_written(leader), 2)
    follower = _follower(inter_worker_key_ttl_ms="60000")
    follower.run(120_000)
    bench.expect("by a follower", _keys_written(follower), 0)


@client_case("C-HERD-15.2", "DistributedHerderTest.testFailedToWriteSessionKey")
def a_key_that_was_not_written_costs_a_read_to_the_end(bench: Bench) -> None:
    """After a key that could not be written the log is read to its end, then it is tried again."""
    leader = HerderBench()
    leader.leads = True
    leader.assign()
    leader.failures[effects.Produce] = ["NotEnoughReplicasException"]
    leader.start_services()
    leader.tick()
    bench.expect("second tick ends", leader.tick(), wanted=True)
    bench.expect("may read configs", leader.state.can_read_configs, wanted=False)
    bench.expect("keys", _keys_written(leader), 0)
    leader.tick()
    bench.expect("may read configs then", leader.state.can_read_configs, wanted=True)
    bench.expect("keys then", _keys_written(leader), 1)


_ENABLED: Final = {"exactly_once_source_support": "enabled"}


def _fence(herder: HerderBench) -> requests.Outcome | None:
    """Ask for a round of fencing as another worker does; None while it goes on."""
    key = herder.state.session_key
    mac = sign(key.key if key else b"", b"", "HmacSHA256")
    signature = RequestSignature(b"", "HmacSHA256", mac)
    answer = herder.ask(requests.FenceZombies(connector="x", signature=signature))
    return answer.value


def _counts(herder: HerderBench) -> list[bytes | None]:
    """Return the task count records of x."""
    return [value for key, value in herder.records(CONFIGS) if key == _COUNT_KEY]


@client_case(
    "C-HERD-16", "DistributedHerderTest.testExternalZombieFencingRequestForSingleTaskConnector"
)
def one_task_after_one_needs_no_fencing(bench: Bench) -> None:
    """From one task to one nothing is fenced; the new count is written."""
    herder = _leader_of("", **_ENABLED)
    one = b'{"task-count":1}'
    bench.expect("counts at first", _counts(herder), [one])
    herder.held.add(effects.StopTask)
    herder.write_tasks("x", "new")
    herder.settle()
    herder.release_held(effects.StopTask)
    herder.run(1_000)
    bench.expect("counts", _counts(herder), [one, one])
    bench.expect("fenced", herder.all_asked(effects.FenceProducers), [])


@client_case("C-HERD-16.2", "DistributedHerder.doFenceZombieSourceTasks")
def more_tasks_than_one_are_fenced(bench: Bench) -> None:
    """Otherwise the producers of the count before are fenced, and then the new one is written."""
    herder = _leader_of("", "", **_ENABLED)
    herder.state.work.connectors.clear()
    herder.write_tasks("x", "a", "b", "c")
    herder.run(1_000)
    fenced = [each.transactional_ids for each in herder.all_asked(effects.FenceProducers)]
    bench.expect("fenced", fenced, [("connect-x-0", "connect-x-1")])
    counts = [b'{"task-count":2}', b'{"task-count":3}']
    bench.expect("counts", _counts(herder), counts)


@client_case("C-HERD-17", "DistributedHerder.ConfigUpdateListener.onTaskConfigUpdate")
def new_tasks_cancel_a_fencing(bench: Bench) -> None:
    """A commit of tasks while producers are being fenced fails that round with 409."""
    herder = _leader_of("", "", **_ENABLED)
    herder.state.work.connectors.clear()
    herder.held.add(effects.FenceProducers)
    herder.write_tasks("x", "a", "b")
    herder.settle()
    bench.expect("fencing", _fence(herder), None)
    key = herder.state.session_key
    signature = RequestSignature(
        b"", "HmacSHA256", sign(key.key if key else b"", b"", "HmacSHA256")
    )
    answer = herder.ask(requests.FenceZombies(connector="x", signature=signature))
    herder.write_tasks("x", "c", "d")
    herder.settle()
    herder.release_held(effects.FenceProducers)
    herder.run(1_000)
    bench.expect("status", _status(answer.result()), 409)


@client_case("C-HERD-18", "DistributedHerder.writeToConfigTopicAsLeader", "DistributedHerder.tick")
def a_fenced_leader_claims_its_privilege_again(bench: Bench) -> None:
    """A leader whose write is fenced fails the request, and claims its privilege later."""
    herder = _leader(**_ENABLED)
    claims = len(herder.all_asked(effects.InitTransactions))
    herder.failures[effects.ProduceInTransaction] = ["ProducerFencedException"]
    refused = herder.answer(requests.PutConnectorConfig(connector="x", config=_X))
    bench.expect("refused", _failure(refused), (requests.ErrorKind.CONNECT, None))
    bench.expect("claims", len(herder.all_asked(effects.InitTransactions)), claims + 1)
    bench.expect("fenced", herder.state.fenced_from_config_topic, wanted=False)
    written = herder.answer(requests.PutConnectorConfig(connector="x", config=_X))
    bench.expect("written then", _failure(written), None)


@client_case("C-HERD-18.2", "DistributedHerder.tick")
def a_former_leader_does_not_claim_it(bench: Bench) -> None:
    """A worker that does not lead any more forgets that it was fenced."""
    herder = _follower(**_ENABLED)
    herder.state.fenced_from_config_topic = True
    herder.answer(requests.CheckHealth())
    bench.expect("fenced", herder.state.fenced_from_config_topic, wanted=False)
    bench.expect("claims", herder.all_asked(effects.InitTransactions), [])
