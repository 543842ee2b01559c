"""Checks of a Kafka Streams application of a scenario, and its topology as clients send it."""

from typing import Final

from coordinator_sim.broker.offered import offered_features
from coordinator_sim.clients.streams_member import Subtopology, TopicInfo
from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.sim.scenario import checks
from coordinator_sim.sim.scenario.settings import Scope, check_settings
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.work import CommitPolicy, check_processing
from coordinator_sim.sim.scenario.world import NOT_OF_STREAMS, StreamsGroupSpec

MAX_BYTES: Final = 1 << 50
"""A pebibyte: more than a task's disk has."""


def check_streams(scenario: UncheckedScenario, group: StreamsGroupSpec) -> None:
    """Refuse an application that cannot be.

    Raises:
        ScenarioError: names the value, the bound and the fix.
        ConfigError: a setting is unknown, or outside its bounds.
    """
    name = f"streams group {group.group_id!r}"
    if "streams.version" not in offered_features(profile_named(scenario.profile)).finalized:
        raise ScenarioError(
            f"{name}: brokers of profile {scenario.profile!r} have no such groups; use 4.2 or later"
        )
    if not group.subtopologies:
        raise ScenarioError(f"{name} has no subtopology: give one")
    if group.topics or group.pattern:
        raise ScenarioError(f"{name} has topics: name them as source_topics of a subtopology")
    written = [topic for part in group.subtopologies for topic in part.writes]
    for part in group.subtopologies:
        if not part.source_topics and not part.repartition_topics:
            raise ScenarioError(f"{name} has a subtopology that reads nothing: give it a topic")
        for topic in part.source_topics:
            checks.known("topic", topic, scenario.partitions_by_topic)
        for topic in part.repartition_topics:
            checks.known(f"repartition topic of {name} (name it in `writes`)", topic, written)
        for store_name, store in part.stores.items():
            checks.check_name_of_topic(store_name)
            checks.within(f"bytes of store {store_name!r}", store.bytes, 0, MAX_BYTES)
            checks.within(f"record_bytes of store {store_name!r}", store.record_bytes, 1, MAX_BYTES)
            checks.within(
                f"restore_bytes_per_s of store {store_name!r}",
                store.restore_bytes_per_s,
                1,
                MAX_BYTES,
            )
    stores = [store for part in group.subtopologies for store in part.stores]
    checks.unique(f"store of {name}", stores)
    _check_members(group)


def _check_members(group: StreamsGroupSpec) -> None:
    for member in group.members:
        settings = {**group.settings, **member.settings}
        check_settings(Scope.CONSUMER, settings)
        for setting in NOT_OF_STREAMS:
            if setting in settings:
                raise ScenarioError(f"{member.name!r}: Kafka Streams has no {setting}: remove it")
        if member.client != "java" or member.topics is not None:
            raise ScenarioError(f"{member.name!r} is Java's, and reads what its topology does")
        if member.commits != CommitPolicy():
            raise ScenarioError(f"{member.name!r}: commit_interval_ms of its group says when")
        checks.within(f"callback_ms of {member.name!r}", member.callback_ms, 0, checks.MAX_TIME_MS)
        checks.within(
            f"processing_ms of {member.name!r}", member.processing_ms, 0, checks.MAX_TIME_MS
        )
        if member.processing is not None:
            check_processing(member.name, member.processing)
    checks.within(
        f"commit_interval_ms of {group.group_id!r}",
        group.commit_interval_ms,
        1,
        checks.MAX_TIME_MS,
    )


def topology_of(group: StreamsGroupSpec) -> dict[str, Subtopology]:
    """Return the topology of an application as its clients describe it to brokers, by id."""
    prefix = f"{group.group_id}-"
    return {
        str(number): Subtopology(
            source_topics=part.source_topics,
            repartition_sink_topics=tuple(f"{prefix}{name}-repartition" for name in part.writes),
            repartition_source_topics=tuple(
                TopicInfo(name=f"{prefix}{name}-repartition") for name in part.repartition_topics
            ),
            state_changelog_topics=tuple(
                TopicInfo(name=f"{prefix}{name}-changelog") for name in part.stores
            ),
        )
        for number, part in enumerate(group.subtopologies)
    }
