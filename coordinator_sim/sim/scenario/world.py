"""The parts of a scenario: topics, network, groups and their members.

Plain data without behaviour. `happenings` has the changes over time.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from coordinator_sim.clients.config import refused_by
from coordinator_sim.sim.scenario.load import Keys, Load, PoisonRecords
from coordinator_sim.sim.scenario.settings import CONNECT_PROTOCOL, SETTINGS, STRATEGY, Scope
from coordinator_sim.sim.scenario.work import CommitPolicy, ConnectorWork, ProcessingLaw

DEFAULT_PROCESSING_MS: Final = 200
"""Duration of a poll's work where a scenario gives none; a variety draws another instead."""
DEFAULT_RECORDS_PER_S: Final = 100
"""Records a second to each partition where a scenario gives neither rate nor load."""
Client = Literal["java", "librdkafka", "franz-go"]


class ConstantLatency(Struct, frozen=True, tag="constant", forbid_unknown_fields=True):
    """Every message takes `us` microseconds one way. Draws no choice."""

    us: int = 500


class UniformLatency(Struct, frozen=True, tag="uniform", forbid_unknown_fields=True):
    """Each message takes between `low_us` and `high_us` microseconds, both included."""

    low_us: int
    high_us: int


class TableLatency(Struct, frozen=True, tag="table", forbid_unknown_fields=True):
    """Latency drawn from a quantile table, interpolated with integers.

    Args:
        quantiles_us: At least two values in microseconds, never descending, at equal steps of
            probability from the smallest latency to the largest. The default has the body of a
            log-normal law with a median of 500 us and a tail of 20 ms.
    """

    quantiles_us: tuple[int, ...] = (
        *(150, 250, 300, 340, 370, 400, 430, 450, 480, 490, 500),
        *(520, 550, 590, 640, 700, 780, 900, 1_100, 1_800, 20_000),
    )


LatencyLaw = ConstantLatency | UniformLatency | TableLatency


class NetworkSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The network between members and brokers.

    Args:
        latency: Law of the one-way latency, applied per message; a connection stays FIFO.
    """

    latency: LatencyLaw = ConstantLatency()


class TopicSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic of the world.

    Args:
        partitions: Number of partitions at the start, at least 1.
        records_per_s: Records produced to each partition every second from time 0; unused where
            the topic has a load.
        load: Records produced to the whole topic; without one, `records_per_s` to each partition.
        keys: Shares of the partitions in the load; equal ones without.
        poison: Records that keep whoever processes them for a long time.
    """

    name: str
    partitions: int
    records_per_s: int = DEFAULT_RECORDS_PER_S
    load: Load | UnsetType = UNSET
    keys: Keys | UnsetType = UNSET
    poison: PoisonRecords | UnsetType = UNSET


class ConsumerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One consumer process. Its name is its client id and is unique in the scenario.

    Args:
        start_ms: Start time; None for never by itself (see `StartMember`).
        instance_id: `group.instance.id`; None makes the member dynamic.
        processing_ms: Application work between two polls, where `processing` is None.
        callback_ms: Time its rebalance callbacks take, revocation above all.
        topics: Its own subscription; None takes the group's.
        rack: `client.rack`.
        settings: Client settings of this member alone, over the group's.
        processing: Duration of a poll's work; None takes `processing_ms` a poll.
        commits: When the application commits.
        client: Kind of client: `java`, or one of the models `librdkafka` and `franz-go`.
    """

    name: str
    start_ms: int | None = 0
    instance_id: str | None = None
    processing_ms: int = DEFAULT_PROCESSING_MS
    callback_ms: int = 0
    topics: tuple[str, ...] | None = None
    rack: str | None = None
    settings: dict[str, str] = {}
    processing: ProcessingLaw | None = None
    commits: CommitPolicy = CommitPolicy()
    client: Client = "java"


class ConsumerGroupSpec(
    Struct, frozen=True, kw_only=True, tag="consumer", forbid_unknown_fields=True
):
    """A consumer group.

    Args:
        assignors: Names in the members' order of preference: `range`, `roundrobin`, `sticky`,
            `cooperative-sticky`.
        settings: Client settings by Kafka's names, for every member.
        pattern: Regular expression of the topics to read, whole names; excludes `topics`.
    """

    group_id: str
    topics: tuple[str, ...]
    members: tuple[ConsumerSpec, ...]
    assignors: tuple[str, ...] = ("range", "cooperative-sticky")
    settings: dict[str, str] = {}
    pattern: str | None = None


class RecordFates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an application makes of records, by their offsets; the first that applies counts.

    Each is a number: records whose offset is a multiple of it are meant; 0 means none.

    Args:
        poison_every: The application fails on these: it releases them at each delivery.
        reject_every: Rejected, and so not delivered again.
        release_every: Released at their first delivery, accepted at a later one.
        renew_every: Their lock is renewed once; they are accepted after that much more work.
    """

    poison_every: int = 0
    reject_every: int = 0
    release_every: int = 0
    renew_every: int = 0


class ShareConsumerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One share consumer process. Its name is its client id and is unique in the scenario.

    Args:
        start_ms: Start time; None for never by itself (see `StartMember`).
        processing_ms: Application work between two polls, where `processing` is None.
        processing: Duration of a poll's work; None takes `processing_ms` a poll.
        acknowledges: `implicit` accepts what a poll returned with the next one; `explicit`
            acknowledges each record by `fates`, and accepts all others.
        commits: `poll` sends acknowledgements with the next poll, `sync` and `async` by a commit
            after each poll's work, waiting or not.
        settings: Client settings of this member alone, over the group's.
    """

    name: str
    start_ms: int | None = 0
    processing_ms: int = DEFAULT_PROCESSING_MS
    processing: ProcessingLaw | None = None
    acknowledges: Literal["implicit", "explicit"] = "implicit"
    commits: Literal["poll", "sync", "async"] = "poll"
    fates: RecordFates = RecordFates()
    settings: dict[str, str] = {}


class ShareGroupSpec(Struct, frozen=True, kw_only=True, tag="share", forbid_unknown_fields=True):
    """A share group (KIP-932); it begins at the topics' beginning.

    Args:
        settings: Client settings by Kafka's names, for every member.
        group_settings: Settings of the group by Kafka's names, such as
            `share.record.lock.duration.ms`.
    """

    group_id: str
    topics: tuple[str, ...]
    members: tuple[ShareConsumerSpec, ...]
    settings: dict[str, str] = {}
    group_settings: dict[str, str] = {}


class StateStoreSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state store of each task of a subtopology.

    Args:
        bytes: Size of one task's changelog, from the start on.
        record_bytes: Size of one of its records, in which task offsets are counted.
        restore_bytes_per_s: Rate at which an instance without the state reads it.
    """

    bytes: int
    record_bytes: int = 100
    restore_bytes_per_s: int = 50_000_000


class SubtopologySpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a topology; it has as many tasks as its topics have partitions.

    Args:
        source_topics: Topics of the scenario that it reads.
        repartition_topics: Names of the group's own topics that it reads; without the group's id.
        writes: Names of the repartition topics that it writes.
        stores: Its state stores, by name.
    """

    source_topics: tuple[str, ...] = ()
    repartition_topics: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    stores: dict[str, StateStoreSpec] = {}


NOT_OF_STREAMS: Final = (
    "group.protocol",
    "group.remote.assignor",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "session.timeout.ms",
    "heartbeat.interval.ms",
)
"""Settings of consumers that are Kafka Streams' own, or the group's."""


class StreamsGroupSpec(ConsumerGroupSpec, frozen=True, kw_only=True, tag="streams"):
    """A Kafka Streams application with `group.protocol=streams` (KIP-1071).

    Each member is an instance with one thread. Standby and warm-up copies are settings of the
    brokers, `group.streams.*`. No records come through repartition topics.

    Args:
        topics: None: its subtopologies name what it reads.
        subtopologies: In order; their ids count from 0.
        commit_interval_ms: `commit.interval.ms`.
        persistent_volume: Whether a member's new process finds the state directory of its old one.
    """

    topics: tuple[str, ...] = ()
    subtopologies: tuple[SubtopologySpec, ...] = ()
    commit_interval_ms: int = 30_000
    persistent_volume: bool = True


class WorkerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One Connect worker process. Its name is its client id and is unique in the scenario.

    Args:
        start_ms: Start time; None for never by itself (see `StartMember`).
        settings: Worker settings of this worker alone, over the cluster's.
    """

    name: str
    start_ms: int | None = 0
    settings: dict[str, str] = {}


class TopicCosts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cost of reading an internal topic for a worker, besides the network's latency.

    The figures are measured; see docs/guides/connect-start-up.md for the machine and the method.

    Args:
        fetch_us: Time of a broker for each fetch that has records.
        bytes_per_s: Bandwidth from a broker to one of a worker's consumers.
        record_ns: Time of the worker for each record: deserialise, process, keep.
        work_bytes_per_s: Further rate of the worker, for the bytes of keys and values.
        partition_fetch_bytes: `max.partition.fetch.bytes`.
        fetch_bytes: `fetch.max.bytes`.
        linger_ms: `linger.ms` of the worker's producers; 5 since 4.0, 0 before.
    """

    fetch_us: int = 500
    bytes_per_s: int = 250_000_000
    record_ns: int = 5_000
    work_bytes_per_s: int = 200_000_000
    partition_fetch_bytes: int = 1_048_576
    fetch_bytes: int = 52_428_800
    linger_ms: int = 5


class OffsetHistory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """History of a topic of source offsets, which determines what a worker finds.

    Args:
        source_partitions: Number of different keys: source partitions with an offset.
        commit_every_ms: Time between two offsets of one source partition.
        written_ms: Total time of writing.
        segment_bytes: `segment.bytes` of the topic; these defaults are Kafka's.
        segment_ms: `segment.ms`.
        min_cleanable_dirty_ratio: `min.cleanable.dirty.ratio`, from 0 to 1.
    """

    source_partitions: int
    commit_every_ms: int
    written_ms: int
    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    min_cleanable_dirty_ratio: float = 0.5


class InternalTopicsSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The internal topics of a Connect cluster as its first worker finds them.

    Besides these records the config topic has those of the cluster's connectors.

    Args:
        exist: Whether the topics exist; else the first worker creates them.
        offset_partitions: `offset.storage.partitions`.
        status_partitions: `status.storage.partitions`.
        offset_records: Number of source offsets, spread over the partitions.
        offset_end: Sum of the partitions' end offsets, larger than the number of records after
            compaction. None for no gaps.
        offset_history: How the source offsets were written and compacted; replaces the two numbers
            above, which follow from it.
        offset_record_bytes: Size of key and value of one source offset.
        status_records: Number of statuses of connectors long gone.
        status_record_bytes: Size of key and value of one status.
        config_records: Number of configurations of connectors long gone, before those of the
            cluster's connectors.
        config_record_bytes: Size of key and value of one configuration.
        compact_every_ms: Time between two passes of the log cleaner over these topics. None for
            none: where a segment is open for days, a day's records are not compacted.
        costs: Costs of reading.
    """

    exist: bool = True
    offset_partitions: int = 25
    status_partitions: int = 5
    offset_records: int = 0
    offset_end: int | None = None
    offset_history: OffsetHistory | None = None
    offset_record_bytes: int = 100
    status_records: int = 0
    status_record_bytes: int = 150
    config_records: int = 0
    config_record_bytes: int = 500
    compact_every_ms: int | None = None
    costs: TopicCosts = TopicCosts()


class ConnectGroupSpec(
    Struct, frozen=True, kw_only=True, tag="connect", forbid_unknown_fields=True
):
    """A Connect cluster.

    Args:
        connect_protocol: `eager`, `compatible` or `sessioned`, as in `connect.protocol`.
        connectors: Task count of each connector present from the start.
        settings: Worker settings by Kafka's names, for every worker.
        internal_topics: The topics for configurations, offsets and statuses.
        work: Work of a connector's tasks, by connector; tasks of other connectors do nothing.
    """

    group_id: str
    workers: tuple[WorkerSpec, ...]
    connect_protocol: str = "sessioned"
    connectors: dict[str, int] = {}
    settings: dict[str, str] = {}
    internal_topics: InternalTopicsSpec = InternalTopicsSpec()
    work: dict[str, ConnectorWork] = {}


GroupSpec = ConsumerGroupSpec | StreamsGroupSpec | ConnectGroupSpec | ShareGroupSpec
MemberSpec = ConsumerSpec | WorkerSpec | ShareConsumerSpec
G = TypeVar("G", bound=GroupSpec)


def members_of(group: GroupSpec) -> tuple[MemberSpec, ...]:
    """Return the consumers or workers of a group, in the order written."""
    return group.workers if isinstance(group, ConnectGroupSpec) else group.members


def with_members(group: GroupSpec, members: Iterable[MemberSpec]) -> GroupSpec:
    """Return the group with other members of its kind."""
    field = "workers" if isinstance(group, ConnectGroupSpec) else "members"
    changed: GroupSpec = msgspec.structs.replace(group, **{field: tuple(members)})
    return changed


def names_read_by(group: GroupSpec) -> tuple[str, ...]:
    """Return the settings that a group and its members may be given."""
    match group:
        case StreamsGroupSpec():
            return tuple(name for name in SETTINGS[Scope.CONSUMER] if name not in NOT_OF_STREAMS)
        case ConsumerGroupSpec():
            return (*SETTINGS[Scope.CONSUMER], STRATEGY)
        case ShareGroupSpec():
            return (*SETTINGS[Scope.SHARE], *SETTINGS[Scope.SHARE_GROUP])
        case ConnectGroupSpec():
            return (*SETTINGS[Scope.CONNECT], CONNECT_PROTOCOL)


def with_member_settings(group: G, settings: Mapping[str, str]) -> G:
    """Return the group with settings for all its members, replacing their own.

    `partition.assignment.strategy` (names separated by commas), `connect.protocol` and a share
    group's own settings change the group's fields. Settings of the other kinds of group are
    ignored.
    """
    read = {name: value for name, value in settings.items() if name in names_read_by(group)}
    fields: dict[str, object] = {}
    if isinstance(group, ConsumerGroupSpec) and STRATEGY in read:
        fields["assignors"] = tuple(read.pop(STRATEGY).split(","))
    if isinstance(group, ConnectGroupSpec) and CONNECT_PROTOCOL in read:
        fields["connect_protocol"] = read.pop(CONNECT_PROTOCOL)
    if isinstance(group, ShareGroupSpec):
        own = {name: read.pop(name) for name in SETTINGS[Scope.SHARE_GROUP] if name in read}
        fields["group_settings"] = {**group.group_settings, **own}
    changed = msgspec.structs.replace(group, settings={**group.settings, **read}, **fields)
    members = [
        msgspec.structs.replace(member, settings=_without(member.settings, read))
        for member in members_of(changed)
    ]
    return cast("G", with_members(changed, members))


def with_new_configuration(
    group: ConsumerGroupSpec, settings: Mapping[str, str]
) -> ConsumerGroupSpec:
    """Return the group as members have it that are started with settings over their old ones."""
    kept = msgspec.structs.replace(
        group,
        settings=_kept(group.settings, settings),
        members=tuple(
            msgspec.structs.replace(member, settings=_kept(member.settings, settings))
            for member in group.members
        ),
    )
    return with_member_settings(kept, settings)


def newly_configured(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Return new settings over old ones.

    Whoever gives a member another `group.protocol` takes out what that protocol refuses.
    """
    return {**_kept(old, new), **new}


def _kept(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    protocol = new.get("group.protocol")
    return _without(old, {} if protocol is None else dict.fromkeys(refused_by(protocol), ""))


def _without(settings: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in names}


def describes_work(group: GroupSpec) -> bool:
    """Whether some member or task of the group has other than default work."""
    if isinstance(group, ConnectGroupSpec):
        return bool(group.work)
    if isinstance(group, ShareGroupSpec):
        return True
    return any(
        member.processing is not None or member.commits != CommitPolicy()
        for member in group.members
    )
