"""Worked examples of Connect's assignors."""

from coordinator_sim.assignors.contract import ConnectAssignmentPlan, ConnectMember, WorkerLoad
from coordinator_sim.assignors.registry import make_connect_assignor
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim_conformance.client_cases.connect_assignor import (
    SECOND_WORKERS,
    TWO_BY_FOUR,
    Cluster,
    busy,
    load,
    start,
)


def test_eager_deals_connectors_then_tasks_in_one_circle() -> None:
    """The tasks go on with the worker after the last connector's."""
    assignor = make_connect_assignor("default", scheduled_rebalance_max_delay_ms=0)
    members = [ConnectMember(member_id="member"), ConnectMember(member_id="leader")]
    plan = assignor.assign(
        configured={"connector2": 1, "connector1": 2},
        members=members,
        generation_id=1,
        last_completed_generation_id=-1,
        now_ms=0,
    )
    assert plan.assigned == {"leader": load("C1 C1-0 C2-0"), "member": load("C2 C1-1")}
    assert (plan.revoked, plan.delay_ms) == ({}, 0)


def test_eager_leaves_spare_workers_empty() -> None:
    """A worker without work is still in the plan."""
    assignor = make_connect_assignor("default", scheduled_rebalance_max_delay_ms=0)
    plan = assignor.assign(
        configured={"connector1": 1},
        members=[ConnectMember(member_id=member) for member in "abc"],
        generation_id=1,
        last_completed_generation_id=-1,
        now_ms=0,
    )
    assert plan.assigned == {"a": load("C1"), "b": load("C1-0"), "c": WorkerLoad()}


def test_a_joiner_receives_in_the_follow_up_what_was_revoked() -> None:
    """Half of the work is revoked first and given in the next generation."""
    cluster = start(1)
    assert cluster.running["worker1"].connectors == ("connector1", "connector2")
    cluster.running["worker2"] = WorkerLoad()
    moved = load("C1 C1-0 C1-1 C1-2 C1-3")
    plan = cluster.rebalance()
    assert (busy(plan.assigned), plan.revoked, plan.delay_ms) == ({}, {"worker1": moved}, 0)
    plan = cluster.rebalance()
    assert (busy(plan.assigned), plan.revoked) == ({"worker2": moved}, {})


def test_a_worker_that_returns_in_time_gets_its_work_back() -> None:
    """Lost work waits; the returned worker is the candidate for it."""
    cluster = start(2)
    del cluster.running["worker2"]
    delays = [cluster.rebalance().delay_ms]
    cluster.now_ms += 150_000
    delays.append(cluster.rebalance().delay_ms)
    cluster.now_ms += 75_000
    cluster.running["worker2"] = WorkerLoad()
    delays.append(cluster.rebalance().delay_ms)
    assert delays == [300_000, 150_000, 75_000]
    cluster.now_ms += 75_000
    plan = cluster.rebalance()
    assert (busy(plan.assigned), plan.revoked, plan.delay_ms) == (
        {"worker2": load(SECOND_WORKERS)},
        {},
        0,
    )


def test_work_of_a_worker_gone_for_good_is_dealt_out_after_the_delay() -> None:
    """Its connectors and tasks stay unassigned until the scheduled delay is over."""
    cluster = start(2)
    del cluster.running["worker2"]
    assert busy(cluster.rebalance().assigned) == {}
    cluster.now_ms += 300_000
    plan = cluster.rebalance()
    assert (plan.assigned, plan.delay_ms) == ({"worker1": load(SECOND_WORKERS)}, 0)


def test_without_a_delay_lost_work_is_dealt_out_at_once() -> None:
    """`scheduled.rebalance.max.delay.ms=0` turns the waiting off."""
    cluster = Cluster(TWO_BY_FOUR, max_delay_ms=0)
    cluster.running = {"worker1": WorkerLoad(), "worker2": WorkerLoad()}
    cluster.rebalance()
    del cluster.running["worker2"]
    plan = cluster.rebalance()
    assert (plan.assigned, plan.delay_ms) == ({"worker1": load(SECOND_WORKERS)}, 0)


def test_a_new_leader_reassigns_without_delay() -> None:
    """The leader does not know that the work was somebody's."""
    cluster = start(3)
    del cluster.running["worker1"]
    cluster.elect()
    plan = cluster.rebalance()
    assert plan.delay_ms == 0
    assert busy(plan.assigned) == {"worker2": load("C2-2"), "worker3": load("C1 C1-0 C1-3")}


def test_a_deleted_connector_is_revoked_from_every_holder() -> None:
    """The connector and its tasks stop where they run."""
    cluster = start(2, {**TWO_BY_FOUR, "connector3": 4})
    cluster.configured = TWO_BY_FOUR
    plan = cluster.rebalance()
    revoked = [task for own in plan.revoked.values() for task in own.tasks]
    assert sorted(revoked) == [ConnectorTaskId("connector3", number) for number in range(4)]
    assert [c for own in plan.revoked.values() for c in own.connectors] == ["connector3"]


def test_work_that_two_workers_run_is_revoked_from_both() -> None:
    """The work is handed out anew once both have stopped it."""
    cluster = start(2, {"connector1": 2})
    both = load("C1 C1-0 C1-1")
    cluster.running = {"worker1": both, "worker2": both}
    plan = cluster.rebalance()
    assert set(plan.revoked) == {"worker1", "worker2"}
    assert set(plan.revoked["worker1"].tasks) == set(both.tasks)
    cluster.rebalance()
    assert cluster.task_loads() == [1, 1]


def test_successive_revocations_back_off() -> None:
    """A second round in a row that would revoke waits 40 ms, then 1600 ms."""
    cluster = start(1, {"connector1": 4, "connector2": 4, "connector3": 4})
    seen = []
    for number in range(2, 8):
        if number < 7:
            cluster.running[f"worker{number}"] = WorkerLoad()
        delay_ms = cluster.rebalance().delay_ms
        seen.append((delay_ms, cluster.task_loads()))
        cluster.now_ms += delay_ms
    assert seen == [
        (0, [0, 6]),
        (40, [3, 3, 6]),
        (0, [0, 3, 3, 3]),
        (1600, [1, 2, 3, 3, 3]),
        (0, [0, 1, 2, 2, 2, 2]),
        (0, [2, 2, 2, 2, 2, 2]),
    ]


def test_a_plan_that_was_not_delivered_is_computed_again() -> None:
    """The leader distrusts what it assigned in a generation it never completed."""
    cluster = start(2)
    cluster.running["worker3"] = WorkerLoad()
    first = cluster.rebalance(delivered=False)
    assert {task for own in first.revoked.values() for task in own.tasks} == set(
        load("C1-0 C2-1").tasks
    )
    retry = cluster.rebalance()
    assert (retry.delay_ms, retry.revoked, busy(retry.assigned)) == (40, {}, {})
    cluster.now_ms += 40
    again = cluster.rebalance()
    assert again.revoked == first.revoked
    cluster.rebalance()
    assert cluster.task_loads() == [2, 3, 3]


def test_nobody_needs_no_plan() -> None:
    """An empty group has an empty plan."""
    assert Cluster(TWO_BY_FOUR).rebalance() == ConnectAssignmentPlan(assigned={}, revoked={})
