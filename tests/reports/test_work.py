"""Work counted by Spark and by the pure module: the same numbers for the same events."""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import CommitPolicy, ConsumerGroupSpec, Scenario
from coordinator_sim.sim.scenario.variants import with_counted_work
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import plain, rows_of
from coordinator_sim.trace.work import LagPoint, count_work, lag_over_time
from coordinator_sim_scenarios.strategies import scenarios

if TYPE_CHECKING:
    from tests.reports.conftest import Frame

pytest.importorskip("pyspark", reason="needs the spark extra")

INFO = RunInfo(trace_id="t", source=Source.SIM, cluster_id="sim", version="0", profile="4.4")
POLICIES = st.sampled_from(
    (CommitPolicy(), CommitPolicy(when="before"), CommitPolicy(when="never", on_revoke=False))
)


def with_policy(scenario: Scenario, policy: CommitPolicy) -> Scenario:
    """The scenario with this policy for its consumers, and its work counted."""
    groups = tuple(
        msgspec.structs.replace(
            group,
            members=tuple(msgspec.structs.replace(m, commits=policy) for m in group.members),
        )
        if isinstance(group, ConsumerGroupSpec)
        else group
        for group in scenario.groups
    )
    return with_counted_work(msgspec.structs.replace(scenario, groups=groups))


def rows(events: list[TraceEvent]) -> list[dict[str, Any]]:
    """The events as rows of the trace's table."""
    return [
        {
            **{name: plain(value) for name, value in msgspec.structs.asdict(row).items()},
            "cluster_id": "sim",
        }
        for ordinal, event in enumerate(events)
        if event.position is not None
        for row in rows_of(event, ordinal, INFO)
    ]


def counted_by_spark(frame: "Frame", events: list[TraceEvent]) -> list[dict[str, Any]]:
    """The counts as rows, in the order of the pure module's."""
    from coordinator_sim_reports.transforms.work import CONNECTOR, COUNTS, work

    found = work(frame("events", rows(events))).orderBy("group_id", CONNECTOR).collect()
    return [{name: row[name] for name in ("group_id", CONNECTOR, *COUNTS)} for row in found]


def lag_by_spark(frame: "Frame", events: list[TraceEvent]) -> list[dict[str, Any]]:
    """The lag as rows, in trace order."""
    from coordinator_sim_reports.transforms.work import lag

    found = lag(frame("events", rows(events))).orderBy("ordinal").collect()
    return [{name: row[name] for name in LagPoint.__struct_fields__} for row in found]


@pytest.mark.spark
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=scenarios(), policy=POLICIES, seed=st.integers(0, 2**16))
def test_spark_and_the_pure_module_agree(
    frame: "Frame", drawn: Scenario, policy: CommitPolicy, seed: int
) -> None:
    """Drawn scenarios with consumers or tasks that crash, freeze and are cut off."""
    recorder = MemoryRecorder()
    run_scenario(with_policy(drawn, policy), seed=seed, recorder=recorder)
    told = [msgspec.structs.asdict(row) for row in count_work(recorder.events)]

    assert counted_by_spark(frame, recorder.events) == told
    points = [msgspec.structs.asdict(point) for point in lag_over_time(recorder.events)]
    assert lag_by_spark(frame, recorder.events) == points
    assert all(r["processed"] - r["duplicates"] + r["gaps"] == r["span"] for r in told)
