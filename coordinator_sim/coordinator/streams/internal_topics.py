"""How many partitions the internal topics of a topology have, and which are missing.

A repartition topic has as many as its application says, or as the largest source of the subtopology
that writes it; topics that are read together have the same number; a changelog has one for each
task. Orders are those of Kafka's hash maps where they decide which trouble is told.

Source: kafka 4.4, group-coordinator/.../streams/topics/InternalTopicManager.java,
RepartitionTopics.java, CopartitionedTopicsEnforcer.java and ChangelogTopics.java.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.coordinator.streams.topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    TopicTrouble,
    Topology,
    distinct,
)
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    java_hash_order,
    java_string_key,
    java_table_capacity,
)
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.messages.streams_group_records import CopartitionGroup, Subtopology, TopicInfo

_SHOWN: Final = 3
"""How many topics a status names."""

Counts = dict[str, int]


class _Stopped(Exception):
    """The search ends with a status or a refusal."""

    def __init__(self, outcome: TopicTrouble | Refusal) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def configured_topology(topology: Topology, topics: KnownTopics) -> ConfiguredTopology | Refusal:
    """The topology with the topics that there are.

    Returns:
        A topology that may have trouble, or a refusal of the heartbeat where it cannot be a
        topology at all.

    Raises:
        OperationAborted: it names what it has not, which Kafka finds by an exception.

    Source: InternalTopicManager.configureTopics.
    """
    copartitioned = {
        name: [_copartitioned(each, group) for group in each.copartition_groups]
        for name, each in topology.subtopologies.items()
    }
    try:
        _want_sources(topology, topics)
        counts = _Deciding(topology, topics).decided(copartitioned)
        configured = {
            name: _configured(topology.subtopologies[name], topics, counts)
            for name in sorted(topology.subtopologies, key=java_string_key)
        }
        missing = _missing(topology, configured, topics)
    except _Stopped as stopped:
        if isinstance(stopped.outcome, Refusal):
            return stopped.outcome
        return ConfiguredTopology(topology.epoch, None, trouble=stopped.outcome)
    trouble = None
    if missing:
        names = _summary([each.name for each in missing])
        text = f"Internal topics are missing: {names}"
        trouble = TopicTrouble(StreamsStatus.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(topology.epoch, configured, missing, trouble)


def _copartitioned(subtopology: Subtopology, group: CopartitionGroup) -> list[str]:
    """The names of a copartition group, in the order of Kafka's set."""
    sources, infos = subtopology.source_topics, subtopology.repartition_source_topics
    for places, count in (
        (group.source_topics, len(sources)),
        (group.repartition_source_topics, len(infos)),
    ):
        if any(not 0 <= place < count for place in places):
            raise OperationAborted(f"subtopology {subtopology.subtopology_id}: no such topic")
    return java_hash_order(
        [
            *(sources[place] for place in group.source_topics),
            *(infos[place].name for place in group.repartition_source_topics),
        ]
    )


def _want_sources(topology: Topology, topics: KnownTopics) -> None:
    missing = {
        name
        for each in topology.subtopologies.values()
        for name in each.source_topics
        if name not in topics.by_name
    }
    if missing:
        names = _summary(sorted(missing, key=java_string_key))
        text = f"Source topics {names} are missing."
        raise _Stopped(TopicTrouble(StreamsStatus.MISSING_SOURCE_TOPICS, text))


def _summary(names: list[str]) -> str:
    more = len(names) - _SHOWN
    tail = f" and {more} additional topics" if more > 0 else ""
    return ", ".join(names[:_SHOWN]) + tail


def _badly_partitioned(text: str) -> _Stopped:
    return _Stopped(TopicTrouble(StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, text))


def _no_topology(text: str) -> _Stopped:
    return _Stopped(Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, text))


class _Deciding:
    """The numbers of partitions as they are decided, step by step."""

    def __init__(self, topology: Topology, topics: KnownTopics) -> None:
        self._parts = list(topology.subtopologies.values())
        self._topics = topics
        self._counts: Counts = {}
        infos = [info for each in self._parts for info in each.repartition_source_topics]
        self._fixed = {info.name for info in infos if info.partitions != 0}
        self._flexible = {info.name for info in infos if info.partitions == 0}

    def decided(self, copartitioned: dict[str, list[list[str]]]) -> Counts:
        """The numbers of all internal topics. Source: decidePartitionCounts."""
        self._counts.update(self._of_repartition_topics())
        for name in java_hash_order(copartitioned):
            for group in copartitioned[name]:
                if group:
                    self._counts.update(self._enforced(group))
        for each in self._parts:
            sources = _sources(each)
            if not sources:
                raise _no_topology(f"No source topics found for subtopology {each.subtopology_id}")
            largest = max(self._count_of(name) for name in sources)
            self._counts.update((info.name, largest) for info in each.state_changelog_topics)
        return self._counts

    def _count_of(self, name: str) -> int:
        return partition_count(name, self._topics, self._counts)

    def _of_repartition_topics(self) -> Counts:
        """Source: RepartitionTopics.setup."""
        found: Counts = {
            info.name: info.partitions
            for each in self._parts
            for info in each.repartition_source_topics
            if info.partitions != 0
        }
        while True:
            # Ends: each round but the last decides a topic more.
            is_open = has_advanced = False
            for each in self._parts:
                for sink in each.repartition_sink_topics:
                    if sink in found:
                        continue
                    count = self._largest_source(each, found)
                    if count is None:
                        is_open = True
                    else:
                        found[sink] = count
                        has_advanced = True
            if not is_open:
                break
            if not has_advanced:
                raise _no_topology(
                    "Failed to compute number of partitions for all repartition topics. There may "
                    "be loops in the topology that cannot be resolved."
                )
        if any(info.name not in found for p in self._parts for info in p.repartition_source_topics):
            raise _no_topology(
                "Failed to compute number of partitions for all repartition topics, because a "
                "repartition source topic is never used as a sink topic."
            )
        return found

    def _largest_source(self, part: Subtopology, found: Counts) -> int | None:
        counts = [found.get(info.name) for info in part.repartition_source_topics]
        counts += (self._topics.by_name[name].partition_count for name in part.source_topics)
        return max((count for count in counts if count is not None), default=None)

    def _enforced(self, group: list[str]) -> Counts:
        """One number for topics that are read together. Source: CopartitionedTopicsEnforcer."""
        own = [name for name in group if name in self._fixed or name in self._flexible]
        counts = {name: self._count_of(name) for name in java_hash_order(own)}
        others = {name: self._count_of(name) for name in group if name not in counts}
        if others:
            count = next(iter(others.values()))
            if any(each != count for each in others.values()):
                raise self._differing(others)
        elif self._fixed:
            # QUIRK: every fixed topic of the topology counts, also one of another group.
            fixed = {self._count_of(name) for name in self._fixed}
            if len(fixed) > 1:
                raise self._differing(counts)
            count = fixed.pop()
        else:
            count = max(counts.values())
            if count == 0:
                raise _no_topology(
                    "All topics in the copartition group had undefined partition number: "
                    f"[{', '.join(counts)}]"
                )
        for name, own_count in counts.items():
            if name in self._fixed and own_count != count:
                raise _badly_partitioned(
                    f"Number of partitions [{own_count}] of repartition topic [{name}] doesn't "
                    f"match number of partitions [{count}] of the source topic."
                )
        return dict.fromkeys(counts, count)

    def _differing(self, counts: Counts) -> _Stopped:
        listed = ", ".join(f"{name}={counts[name]}" for name in sorted(counts, key=java_string_key))
        return _badly_partitioned(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )


def partition_count(name: str, topics: KnownTopics, decided: Counts) -> int:
    """How many partitions a topic has, or is to have.

    Raises:
        OperationAborted: nobody knows.

    Source: InternalTopicManager.getPartitionCount.
    """
    known = topics.by_name.get(name)
    count = decided.get(name) if known is None else known.partition_count
    if count is None:
        raise OperationAborted(f"topic {name}: its number of partitions is not known")
    return count


def _sources(part: Subtopology) -> list[str]:
    return [*part.source_topics, *(info.name for info in part.repartition_source_topics)]


def _configured(part: Subtopology, topics: KnownTopics, counts: Counts) -> ConfiguredSubtopology:
    """Source: InternalTopicManager.fromPersistedSubtopology."""
    return ConfiguredSubtopology(
        task_count=max(partition_count(name, topics, counts) for name in _sources(part)),
        source_topics=tuple(dict.fromkeys(part.source_topics)),
        repartition_source_topics=_internal(part.repartition_source_topics, counts),
        repartition_sink_topics=tuple(dict.fromkeys(part.repartition_sink_topics)),
        state_changelog_topics=_internal(part.state_changelog_topics, counts),
    )


def _internal(infos: Iterable[TopicInfo], counts: Counts) -> dict[str, InternalTopic]:
    made = {}
    for info in infos:
        count = info.partitions or counts[info.name]
        if count < 1:
            raise OperationAborted(f"topic {info.name}: {count} partitions")
        configs = {each.key: each.value for each in info.topic_configs}
        order = distinct((each.key for each in info.topic_configs), "a setting")
        made[info.name] = InternalTopic(
            info.name,
            count,
            info.replication_factor,
            tuple((key, configs[key]) for key in order),
        )
    names = distinct((info.name for info in infos), "an internal topic")
    return {name: made[name] for name in names}


def _missing(
    topology: Topology, configured: dict[str, ConfiguredSubtopology], topics: KnownTopics
) -> tuple[InternalTopic, ...]:
    """Internal topics that do not exist, in the order of Kafka's map.

    Source: InternalTopicManager.missingInternalTopics.
    """
    expected: dict[str, InternalTopic] = {}
    for part in configured.values():
        expected.update(part.repartition_source_topics)
        expected.update(part.state_changelog_topics)
    capacity = java_table_capacity(len(expected))
    for name in topology.required_topics():
        known = topics.by_name.get(name)
        if known is None:
            continue
        wanted = expected.pop(name, None)
        if wanted is not None and wanted.partition_count != known.partition_count:
            raise _badly_partitioned(
                f"Existing topic {name} has different number of partitions: expected "
                f"{wanted.partition_count}, found {known.partition_count}"
            )
    return tuple(expected[name] for name in java_hash_order(expected, capacity))
