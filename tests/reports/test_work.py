"""Work counted in a report and by the pure module: the same numbers for the same events."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator_sim.replay.share_records import share_records as fates_of
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    CommitPolicy,
    ConsumerGroupSpec,
    PauseMember,
    RecordFates,
    Scenario,
    ShareConsumerSpec,
    ShareGroupSpec,
    TopicSpec,
)
from coordinator_sim.sim.scenario.variants import with_counted_work
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.work import WorkCount, count_work, stretches_in
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.reports.groups import computed, of_events, rows
from tests.simulated import events_of, scenario_of

if TYPE_CHECKING:
    from coordinator_sim_reports.local_engine import LocalEngine

LAG_COLUMNS = ("group_id", "topic", "partition", "at_us", "lag", "max_lag")
POLICIES = st.sampled_from(
    (CommitPolicy(), CommitPolicy(when="before"), CommitPolicy(when="never", on_revoke=False))
)


def with_policy(scenario: Scenario, policy: CommitPolicy) -> Scenario:
    """The scenario with this policy for its consumers, and its work counted."""
    groups = tuple(
        msgspec.structs.replace(
            group, members=tuple(msgspec.structs.replace(m, commits=policy) for m in group.members)
        )
        if isinstance(group, ConsumerGroupSpec)
        else group
        for group in scenario.groups
    )
    return with_counted_work(msgspec.structs.replace(scenario, groups=groups))


def of_each_trace(
    table: list[dict[str, Any]], order: Sequence[str], names: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Some columns of a table's rows, by their trace."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(table, key=lambda row: [row[name] for name in order]):
        found.setdefault(row["trace_id"], []).append({name: row[name] for name in names})
    return found


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    drawn=st.lists(st.tuples(scenarios(), POLICIES, st.integers(0, 2**16)), min_size=4, max_size=4)
)
def test_the_report_and_the_pure_module_agree(
    engine: "LocalEngine", drawn: list[tuple[Scenario, CommitPolicy, int]]
) -> None:
    """Consumers or tasks crash, freeze and are cut off: both count the same, run by run."""
    shared = msgspec.structs.replace(all_scenarios()["share-poison"], duration_ms=15_000)
    runs: dict[str, list[TraceEvent]] = {"share": events_of(shared)}
    for number, (scenario, policy, seed) in enumerate(drawn):
        recorder = MemoryRecorder()
        run_scenario(with_policy(scenario, policy), seed=seed, recorder=recorder)
        runs[f"run-{number}"] = recorder.events
    tables = computed(engine, runs, ("work", "lag"))
    columns = WorkCount.__struct_fields__
    counted = of_each_trace(tables["work"], ("group_id", "connector"), columns)
    lags = of_each_trace(tables["lag"], ("ordinal",), LAG_COLUMNS)

    for trace_id, each in runs.items():
        told = [msgspec.structs.asdict(row) for row in count_work(each)]
        assert counted.get(trace_id, []) == told
        points = [
            dict(
                zip(
                    LAG_COLUMNS,
                    (event.group_id, *one.partition, event.ts_us, one.lag, one.max_lag),
                    strict=True,
                )
            )
            for event in each
            if event.event is Event.RECORDS_PROCESSED
            for one in stretches_in(event)
        ]
        assert lags.get(trace_id, []) == points
        assert all(r["processed"] - r["duplicates"] + r["gaps"] == r["span"] for r in told)
        assert trace_id != "share" or told[0]["duplicates"] > 5


def share_run(topic: str, limit: int) -> list[TraceEvent]:
    """A run in which records are rejected, used up, and locked until their locks run out."""
    group = ShareGroupSpec(
        group_id="g",
        topics=(topic,),
        members=tuple(
            ShareConsumerSpec(
                name=name,
                acknowledges="explicit",
                fates=RecordFates(poison_every=50, reject_every=9),
            )
            for name in ("a", "b")
        ),
        group_settings={
            "share.delivery.count.limit": str(limit),
            "share.record.lock.duration.ms": "15000",
        },
    )
    scenario = scenario_of(
        name="shares",
        duration_ms=45_000,
        topics=(TopicSpec(name=topic, partitions=1, records_per_s=10),),
        groups=(group,),
        happenings=(PauseMember(at_ms=9_000, member="a", for_ms=60_000),),
    )
    return events_of(scenario)


def test_records_of_share_groups_are_told_topic_by_topic_as_explain_tells_them() -> None:
    """One function counts them; runs of one group with two topics add up to both."""
    of_topics = {"x": share_run("x", 2), "y": share_run("y", 4)}
    both = sorted((event for each in of_topics.values() for event in each), key=lambda e: e.ts_us)
    found = {row["topic"]: row for row in rows(of_events(both), "share_records")}

    assert set(found) == set(of_topics)
    for topic, each in of_topics.items():
        own, (work,) = fates_of(each), count_work(each)
        assert own is not None
        row, lost = found[topic], own.lost_locks[0]
        assert (row["deliveries"], row["again"]) == (own.deliveries, own.again)
        assert (row["rejected"], row["used_up"]) == (own.rejected, len(own.used_up))
        assert (row["delivery_limit"], row["held_us"]) == (own.limit, own.held_us)
        assert (row["lost_locks"], row["late"]) == (lost.records, lost.late)
        assert (row["silent_us"], row["late_us"]) == (lost.silent_us, lost.late_us)
        assert row["done"] == work.processed - work.duplicates
        assert (row["max_lag"], row["final_lag"]) == (work.max_lag, work.final_lag)
        assert min(own.rejected, len(own.used_up), lost.records) > 0
    whole = fates_of(both)
    assert whole is not None
    assert sum(row["deliveries"] for row in found.values()) == whole.deliveries
