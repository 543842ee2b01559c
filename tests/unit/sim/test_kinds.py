"""The same load on other kinds of groups."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.scenario import (
    CommitPolicy,
    ConsumerGroupSpec,
    ConsumerSpec,
    PerRecord,
    RecordFates,
    Scenario,
    ShareConsumerSpec,
    ShareGroupSpec,
    TopicSpec,
    scenario_to_json,
)
from coordinator_sim.sim.scenario.kinds import as_kind, left_out
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.trace.lag import group_lags
from coordinator_sim.trace.work import count_work
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.command_line import run_here
from tests.unit.sim.test_share_groups import world

LAW = PerRecord(us=4_000)


def consumers(**fields: object) -> Scenario:
    """A consumer group of one topic, of a member with such fields, or with fields of its own."""
    own = {name: fields.pop(name) for name in ("settings", "pattern") if name in fields}
    members = (ConsumerSpec(name="a", processing=LAW, **fields),)  # type: ignore[arg-type] # fields
    group = ConsumerGroupSpec(group_id="g", topics=("t",), members=members, **own)  # type: ignore[arg-type] # fields
    return Scenario(
        name="load",
        title="A load",
        story="It is read.",
        duration_ms=15_000,
        topics=(TopicSpec(name="t", partitions=2, records_per_s=20),),
        groups=(group,),
    )


def test_a_share_group_has_the_work_of_the_consumer_group_and_what_it_reads_of_its_settings() -> (
    None
):
    """No session of its own, no assignor; what was committed synchronously is acknowledged so."""
    asked = {"session.timeout.ms": "9000", "max.poll.interval.ms": "30000"}
    scenario = consumers(settings=asked, start_ms=7, commits=CommitPolicy(when="sync"))
    member = ShareConsumerSpec(name="a", start_ms=7, processing=LAW, commits="sync")
    group = ShareGroupSpec(
        group_id="g", topics=("t",), members=(member,), settings={"max.poll.interval.ms": "30000"}
    )

    assert as_kind(scenario, "share") == replace(scenario, groups=(group,))


@settings(max_examples=20, deadline=None)
@given(
    commits=st.sampled_from(["poll", "sync", "async"]),
    start_ms=st.none() | st.integers(0, 5_000),
    protocol=st.sampled_from(["classic", "consumer"]),
)
def test_there_and_back_is_the_same_share_group(
    commits: str, start_ms: int | None, protocol: str
) -> None:
    """Through either protocol of consumer groups."""
    member = ShareConsumerSpec(
        name="a",
        start_ms=start_ms,
        processing=LAW,
        commits=commits,  # type: ignore[arg-type] # drawn
        settings={"max.poll.interval.ms": "30000"},
    )
    scenario = world(member)

    assert as_kind(as_kind(scenario, protocol), "share") == scenario


@pytest.mark.parametrize(
    ("scenario", "kind", "words"),
    [
        (
            consumers(topics=("t",)),
            "share",
            "topics of 'a' has no counterpart; let all",
        ),
        (consumers(client="franz-go"), "share", "client='franz-go' has no counterpart; use java"),
        (
            consumers(commits=CommitPolicy(when="never")),
            "share",
            "'never' has no counterpart; use",
        ),
        (all_scenarios()["pattern-storm"], "share", "name the topics"),
        (all_scenarios()["keda-thrash"], "share", "scales consumer groups alone"),
        (all_scenarios()["connect-rolling-deploy"], "share", "has no consumer group"),
        (
            all_scenarios()["online-upgrade"],
            "classic",
            "group.protocol=consumer of RestartMember has no counterpart; leave it out",
        ),
        (
            world(
                ShareConsumerSpec(
                    name="a", acknowledges="explicit", fates=RecordFates(reject_every=2)
                )
            ),
            "consumer",
            "fates of 'a' has no counterpart; give the topic poison instead",
        ),
    ],
)
def test_what_a_kind_does_not_know_is_refused(scenario: Scenario, kind: str, words: str) -> None:
    """With the value and the way out."""
    with pytest.raises((ConfigError, ScenarioError), match=words):
        as_kind(scenario, kind)


def test_settings_of_a_share_group_are_set_like_those_of_its_members() -> None:
    """Each goes where it is read; without a share group nobody reads them."""
    given_settings = {"share.record.lock.duration.ms": "15000", "max.poll.records": "5"}
    (group,) = with_settings(as_kind(consumers(), "share"), given_settings).groups

    assert isinstance(group, ShareGroupSpec)
    assert group.group_settings == {"share.record.lock.duration.ms": "15000"}
    assert group.settings == {"max.poll.records": "5"}
    with pytest.raises(ConfigError, match="no group of scenario 'load' reads it"):
        with_settings(consumers(), given_settings)


def test_kinds_are_compared_by_their_own_traces(tmp_path: Path) -> None:
    """A setting goes to the kind that reads it; each figure is that of the kind's trace."""
    (tmp_path / "load.json").write_bytes(scenario_to_json(consumers()))
    out = tmp_path / "runs"
    words = ["run", str(tmp_path / "load.json"), "--as", "consumer,share", "--json", "--out"]
    pairs = ["--set", "max.poll.records=7", "--set", "auto.commit.interval.ms=500"]
    done = run_here(*words, str(out), *pairs)
    assert done.returncode == 0, done.stderr
    (group,) = json.loads(done.stdout)["groups"].values()

    assert list(group) == ["consumer", "share"]
    for kind, figures in group.items():
        events = list(read_run(out / kind).events())
        ((lag,), (work,)) = group_lags(events, 15_000_000), count_work(events)
        assert figures["delay p95, s"] == lag.delay_p95_us / 1e6
        assert figures["records processed"] == work.processed > 300
        assert figures["waiting at the end"] == work.final_lag
    sizes = [each["max.poll.records"] for each in (read_run(out / "share").info.options,)]
    assert sizes == ["7"]
    assert "auto.commit.interval.ms" not in read_run(out / "share").info.options


def test_what_a_kind_goes_without_is_told() -> None:
    """Settings of the group too, and what has a field of its own."""
    static = consumers(instance_id="a-0", settings={"session.timeout.ms": "9000"})
    assert left_out(static, "share") == ("instance_id", "session.timeout.ms")
    assert left_out(static, "consumer") == ("session.timeout.ms",)
    assert left_out(static, "classic") == ()
    rhythm = CommitPolicy(when="every", records=9)
    own = consumers(commits=rhythm)
    (group,) = own.groups
    own = replace(own, groups=(replace(group, assignors=("sticky",)),))
    assert left_out(own, "share") == ("commits", "partition.assignment.strategy")
    assert left_out(own, "consumer") == ()

    shared = world(ShareConsumerSpec(name="a", acknowledges="explicit"))
    (group,) = shared.groups
    asked = replace(group, group_settings={"share.record.lock.duration.ms": "15000"})
    assert left_out(replace(shared, groups=(asked,)), "classic") == (
        "acknowledges",
        "share.record.lock.duration.ms",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "group.protocol=consumer"], "--as classic,consumer sets it too; leave one out"),
        (["--metrics"], "--metrics is for one run: give --as one of its kinds"),
        (["--request-log", "r.log"], "--request-log is for one run"),
    ],
)
def test_what_does_not_go_with_several_kinds_is_refused(words: list[str], told: str) -> None:
    """Nothing that is asked for is left out without a word."""
    done = run_here("run", "rolling-bounce", "--as", "classic,consumer", *words)

    assert done.returncode == 2
    assert told in done.stderr


def test_an_unknown_kind_is_refused() -> None:
    """With the kinds that there are."""
    done = run_here("run", "rolling-bounce", "--as", "share,shared")

    assert done.returncode == 2
    assert "--as share,shared: wants some of classic, consumer, share, each once" in done.stderr
