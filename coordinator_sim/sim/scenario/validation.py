"""Checks that a scenario describes a possible world.

Every message names the value, the bound and the fix.
"""

import re
from typing import Final

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.kafka.api_keys import GROUP_APIS, ApiKey
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.topic_names import check_topic_name
from coordinator_sim.sim.scenario.happenings import (
    AddConnector,
    AddPartitions,
    ChangeSubscription,
    ChangeTaskCount,
    ClusterHappening,
    ConnectorHappening,
    CrashBroker,
    CrashMember,
    CreateTopic,
    DelayResponse,
    DropResponse,
    FailWork,
    Happening,
    HoldReplication,
    LagConfigTopic,
    MoveCoordinator,
    PartitionNetwork,
    PauseMember,
    RemoveConnector,
    RestartMember,
    RestRequest,
    SlowPoll,
    StartMember,
    StopMember,
)
from coordinator_sim.sim.scenario.quantiles import check_table
from coordinator_sim.sim.scenario.settings import (
    ASSIGNORS,
    CONNECT_PROTOCOLS,
    Scope,
    check_settings,
    int_setting,
    unknown_setting,
)
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.variety import check_variety
from coordinator_sim.sim.scenario.work import (
    SinkWork,
    check_commits,
    check_connector_work,
    check_processing,
)
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConstantLatency,
    ConsumerGroupSpec,
    GroupSpec,
    InternalTopicsSpec,
    LatencyLaw,
    OffsetHistory,
    TableLatency,
    UniformLatency,
    members_of,
    names_read_by,
    with_member_settings,
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
MAX_TIME_MS: Final = 10_000 * 366 * 24 * 3_600_000
"""Ten thousand years: as microseconds this still fits 64 bits."""
MAX_BROKERS: Final = 1_000
"""More brokers than any cluster; node ids stay apart from coordinator connections."""
MAX_RECORDS: Final = 10_000_000_000
"""Records of an internal topic: counted, but fetched a MiB at a time."""
MAX_RECORD_BYTES: Final = 1_000_000
MIN_SEGMENT_BYTES: Final = 1 << 20
MAX_SEGMENT_BYTES: Final = (1 << 31) - 1
_MAX_SEGMENTS: Final = 10_000
"""Limit of about `max.message.bytes`."""
MAX_PARTITIONS: Final = 1_000_000
"""Partitions of one topic, beyond what a Kafka controller serves."""
REST_METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
"""Methods of requests to a worker."""
DEFAULT_OFFSETS_PARTITIONS: Final = 50
"""Default of `offsets.topic.num.partitions`."""


def check_scenario(scenario: UncheckedScenario) -> None:
    """Refuse a scenario with an impossible world.

    Raises:
        ScenarioError: names the value, the bound and the fix.
        ConfigError: the profile or a setting is unknown, or outside its bounds.
    """
    if not _NAME.fullmatch(scenario.name):
        raise ScenarioError(
            f"name {scenario.name!r}: must be 1 to 200 letters, digits, '.', '_' and '-', "
            "the first a letter or digit; it names the run's directory"
        )
    _within("duration_ms", scenario.duration_ms, 1, MAX_TIME_MS)
    _within("brokers", scenario.brokers, 1, MAX_BROKERS)
    _within("load_ms", scenario.load_ms, 0, MAX_TIME_MS)
    _within("failover_ms", scenario.failover_ms, 0, MAX_TIME_MS)
    profile_named(scenario.profile)
    check_settings(Scope.BROKER, scenario.broker_settings)
    _check_latency("network.latency", scenario.network.latency)
    if scenario.variety is not None:
        check_variety(scenario.variety)
        _check_latency("variety.latency", scenario.variety.latency)
    _check_topics(scenario)
    _check_groups(scenario)
    for happening in scenario.happenings:
        _check_happening(scenario, happening)


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ScenarioError(f"{name}={value}: must be from {low} to {high}")


def _unique(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ScenarioError(f"a {what} has an empty name: give it one")
        if name in seen:
            raise ScenarioError(f"{what} {name!r} is defined twice: rename or remove one")
        seen.add(name)


def _known(what: str, name: str, names: list[str]) -> None:
    if name not in names:
        listed = ", ".join(names[:20]) or "none"
        raise ScenarioError(f"unknown {what} {name!r}: the scenario has {listed}")


def _check_latency(name: str, latency: LatencyLaw) -> None:
    match latency:
        case ConstantLatency(us=us):
            _within(f"{name}.us", us, 0, MAX_TIME_MS)
        case UniformLatency(low_us=low_us, high_us=high_us):
            _within(f"{name}.low_us", low_us, 0, MAX_TIME_MS)
            _within(f"{name}.high_us", high_us, low_us, MAX_TIME_MS)
        case TableLatency(quantiles_us=quantiles):
            check_table(f"{name}.quantiles_us", quantiles, 0, MAX_TIME_MS)


def _check_topics(scenario: UncheckedScenario) -> None:
    _unique("topic", [topic.name for topic in scenario.topics])
    for topic in scenario.topics:
        _check_topic_name(topic.name)
        _within(f"partitions of topic {topic.name!r}", topic.partitions, 1, MAX_PARTITIONS)
        _within(f"records_per_s of topic {topic.name!r}", topic.records_per_s, 0, 10**9)


def _check_topic_name(name: str) -> None:
    try:
        check_topic_name(name)
    except ConfigError as error:
        raise ScenarioError(str(error)) from None


def _check_groups(scenario: UncheckedScenario) -> None:
    _unique("group", [group.group_id for group in scenario.groups])
    _unique("member", [member.name for member in scenario.members()])
    for group in scenario.groups:
        for member in members_of(group):
            if member.start_ms is not None:
                _within(f"start_ms of {member.name!r}", member.start_ms, 0, MAX_TIME_MS)
        _check_group(scenario, group)


def _check_group(scenario: UncheckedScenario, group: GroupSpec) -> None:
    match group:
        case ConsumerGroupSpec():
            _check_consumers(scenario, group)
        case ConnectGroupSpec():
            _check_connect(group)
            _check_internal_topics(group)
            _check_work(scenario, group)


def _check_consumers(scenario: UncheckedScenario, group: ConsumerGroupSpec) -> None:
    topics = [topic.name for topic in scenario.topics]
    if not group.assignors:
        raise ConfigError(
            f"group {group.group_id!r} has no assignor: name one of {', '.join(ASSIGNORS)}"
        )
    for assignor in group.assignors:
        if assignor not in ASSIGNORS:
            raise ConfigError(f"unknown assignor {assignor!r}: use one of {', '.join(ASSIGNORS)}")
        if group.assignors.count(assignor) > 1:
            raise ConfigError(
                f"group {group.group_id!r} has the assignor {assignor!r} twice: remove one"
            )
    check_settings(Scope.CONSUMER, group.settings)
    for topic in group.topics:
        _known("topic", topic, topics)
    _check_pattern(group)
    instances = [m.instance_id for m in group.members if m.instance_id is not None]
    _unique(f"instance id of group {group.group_id!r}", instances)
    for member in group.members:
        check_settings(Scope.CONSUMER, {**group.settings, **member.settings})
        _within(f"processing_ms of {member.name!r}", member.processing_ms, 0, MAX_TIME_MS)
        _within(f"callback_ms of {member.name!r}", member.callback_ms, 0, MAX_TIME_MS)
        check_commits(member.name, member.commits)
        if member.processing is not None:
            check_processing(member.name, member.processing)
        for topic in member.topics or ():
            _known("topic", topic, topics)
    _check_librdkafka(group)


def _check_pattern(group: ConsumerGroupSpec) -> None:
    if group.pattern is None:
        return
    if group.topics or any(member.topics for member in group.members):
        raise ScenarioError(f"group {group.group_id!r} has topics and a pattern: give one of them")
    if any(member.client != "java" for member in group.members):
        raise ScenarioError(f"pattern of group {group.group_id!r}: only java consumers have one")
    try:
        re.compile(group.pattern)
    except re.error as error:
        raise ScenarioError(f"pattern {group.pattern!r}: {error}") from error


def _check_librdkafka(group: ConsumerGroupSpec) -> None:
    """Refuse assignors that librdkafka lacks, or does not allow together.

    Source: librdkafka 2.15, rdkafka_assignor.c, rd_kafka_assignors_init.
    """
    if all(member.client != "librdkafka" for member in group.members):
        return
    names = ", ".join(group.assignors)
    if "sticky" in group.assignors:
        raise ScenarioError(
            f"assignors of group {group.group_id!r}: {names}; librdkafka has no `sticky`: "
            "use range, roundrobin or cooperative-sticky"
        )
    if "cooperative-sticky" in group.assignors and len(group.assignors) > 1:
        raise ScenarioError(
            f"assignors of group {group.group_id!r}: {names}; librdkafka takes "
            "cooperative-sticky alone, or none of it"
        )


def _check_connect(group: ConnectGroupSpec) -> None:
    if group.connect_protocol not in CONNECT_PROTOCOLS:
        raise ConfigError(
            f"connect.protocol={group.connect_protocol}: "
            f"must be one of {', '.join(CONNECT_PROTOCOLS)}"
        )
    check_settings(Scope.CONNECT, group.settings)
    for worker in group.workers:
        check_settings(Scope.CONNECT, {**group.settings, **worker.settings})
    for connector, tasks in group.connectors.items():
        _within(f"tasks of connector {connector!r}", tasks, 0, MAX_PARTITIONS)


def _check_history(topics: InternalTopicsSpec, history: OffsetHistory) -> None:
    where = "internal_topics.offset_history"
    if topics.offset_records or topics.offset_end is not None or not topics.exist:
        raise ScenarioError(
            f"{where} stands beside offset_records or offset_end, or beside exist=false: "
            "say how many records there are, or how they came to be"
        )
    _within(f"{where}.source_partitions", history.source_partitions, 1, MAX_RECORDS)
    _within(f"{where}.written_ms", history.written_ms, 0, MAX_TIME_MS)
    _within(f"{where}.commit_every_ms", history.commit_every_ms, 1, MAX_TIME_MS)
    _within(f"{where}.segment_ms", history.segment_ms, 1, MAX_TIME_MS)
    _within(f"{where}.segment_bytes", history.segment_bytes, MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES)
    written = history.source_partitions * (history.written_ms // history.commit_every_ms)
    _within(f"records written by {where}", written, 0, MAX_RECORDS)
    by_size = written * (topics.offset_record_bytes + 1) // history.segment_bytes
    by_time = history.written_ms // max(history.segment_ms, history.commit_every_ms)
    _within(f"segments written by {where}", by_size + by_time, 0, _MAX_SEGMENTS)
    if not 0 <= history.min_cleanable_dirty_ratio <= 1:
        raise ScenarioError(
            f"{where}.min_cleanable_dirty_ratio={history.min_cleanable_dirty_ratio}: "
            "must be from 0 to 1"
        )


def _check_internal_topics(group: ConnectGroupSpec) -> None:
    topics = group.internal_topics
    for name in ("offset_partitions", "status_partitions"):
        _within(f"internal_topics.{name}", getattr(topics, name), 1, MAX_PARTITIONS)
    for name in ("offset", "status", "config"):
        records = getattr(topics, f"{name}_records")
        _within(f"internal_topics.{name}_records", records, 0, MAX_RECORDS)
        size = getattr(topics, f"{name}_record_bytes")
        _within(f"internal_topics.{name}_record_bytes", size, 0, MAX_RECORD_BYTES)
        if records and not topics.exist:
            raise ScenarioError(
                f"internal_topics.{name}_records={records}: topics that do not exist have none"
            )
    if topics.compact_every_ms is not None:
        _within("internal_topics.compact_every_ms", topics.compact_every_ms, 1, MAX_TIME_MS)
    if topics.offset_history is not None:
        _check_history(topics, topics.offset_history)
    if topics.offset_end is not None:
        low = topics.offset_records
        _within("internal_topics.offset_end", topics.offset_end, low, MAX_RECORDS)
    if group.connectors and not topics.exist:
        raise ScenarioError(
            f"connectors of {group.group_id!r}: topics that do not exist hold none; add them with "
            "AddConnector once a worker has created the topics"
        )
    costs = topics.costs
    for name in costs.__struct_fields__:
        low = 1 if name.endswith(("bytes", "bytes_per_s")) else 0
        _within(f"internal_topics.costs.{name}", getattr(costs, name), low, 10**15)


def _check_work(scenario: UncheckedScenario, group: ConnectGroupSpec) -> None:
    topics = [topic.name for topic in scenario.topics]
    for connector, work in group.work.items():
        _known("connector", connector, [*group.connectors, *_added_connectors(scenario, group)])
        check_connector_work(connector, work)
        for topic in work.topics if isinstance(work, SinkWork) else (work.topic,):
            _known("topic", topic, topics)


def _added_connectors(scenario: UncheckedScenario, group: ConnectGroupSpec) -> list[str]:
    return [
        happening.connector
        for happening in scenario.happenings
        if isinstance(happening, AddConnector) and happening.group_id == group.group_id
    ]


def _check_happening(scenario: UncheckedScenario, happening: Happening) -> None:
    kind = type(happening).__name__
    _within(f"at_ms of {kind}", happening.at_ms, 0, scenario.duration_ms)
    match happening:
        case StopMember() | CrashMember():
            _check_member(scenario, happening.member)
        case StartMember():
            _check_start(scenario, happening)
        case RestartMember():
            _check_start(scenario, happening)
            _within(f"down_ms of {kind}", happening.down_ms, 0, MAX_TIME_MS)
        case PauseMember() | SlowPoll():
            _check_member(scenario, happening.member)
            _within(f"for_ms of {kind}", happening.for_ms, 1, MAX_TIME_MS)
        case DropResponse() | DelayResponse():
            _check_response(scenario, happening)
        case LagConfigTopic():
            _check_lag(scenario, happening)
        case RestRequest():
            _check_rest_request(scenario, happening)
        case ChangeSubscription():
            _check_subscription(scenario, happening)
        case AddConnector() | RemoveConnector() | ChangeTaskCount() | FailWork():
            _check_connector(scenario, happening)
        case _:
            _check_world_happening(scenario, happening)


def _check_world_happening(
    scenario: UncheckedScenario,
    happening: ClusterHappening,
) -> None:
    match happening:
        case PartitionNetwork():
            _check_cut(scenario, happening)
        case MoveCoordinator():
            _check_move(scenario, happening)
        case HoldReplication():
            _check_offsets_partition(scenario, happening)
            _within("for_ms of HoldReplication", happening.for_ms, 1, MAX_TIME_MS)
        case CrashBroker():
            _within("broker of CrashBroker", happening.broker, 1, scenario.brokers)
            _within("for_ms of CrashBroker", happening.for_ms, 1, MAX_TIME_MS)
        case AddPartitions():
            _known("topic", happening.topic, [topic.name for topic in scenario.topics])
            before = next(t.partitions for t in scenario.topics if t.name == happening.topic)
            _within(f"to of AddPartitions {happening.topic!r}", happening.to, before, 10**6)
        case CreateTopic():
            if happening.topic in [topic.name for topic in scenario.topics]:
                raise ScenarioError(f"topic {happening.topic!r} is there from the start: rename it")
            _check_topic_name(happening.topic)
            name = f"partitions of CreateTopic {happening.topic!r}"
            _within(name, happening.partitions, 1, MAX_PARTITIONS)


def _check_member(scenario: UncheckedScenario, member: str) -> None:
    _known("member", member, [spec.name for spec in scenario.members()])


def _check_start(scenario: UncheckedScenario, happening: StartMember | RestartMember) -> None:
    _check_member(scenario, happening.member)
    group = scenario.group_of(happening.member)
    for name in happening.settings:
        if name not in names_read_by(group):
            raise unknown_setting(name)
    # The group with these settings is checked like any other.
    _check_group(scenario, with_member_settings(group, happening.settings))


def _check_response(scenario: UncheckedScenario, happening: DropResponse | DelayResponse) -> None:
    kind = type(happening).__name__
    _check_member(scenario, happening.member)
    _within(f"count of {kind}", happening.count, 1, MAX_PARTITIONS)
    _known("api", happening.api, [api.name for api in ApiKey if api in GROUP_APIS])
    if isinstance(happening, DelayResponse):
        _within("by_ms of DelayResponse", happening.by_ms, 1, MAX_TIME_MS)


def _check_lag(scenario: UncheckedScenario, happening: LagConfigTopic) -> None:
    _check_member(scenario, happening.member)
    if not isinstance(scenario.group_of(happening.member), ConnectGroupSpec):
        raise ScenarioError(
            f"{happening.member!r} is a consumer: only Connect workers read a config topic"
        )
    _within("for_ms of LagConfigTopic", happening.for_ms, 1, MAX_TIME_MS)


def _check_rest_request(scenario: UncheckedScenario, happening: RestRequest) -> None:
    _check_member(scenario, happening.member)
    if not isinstance(scenario.group_of(happening.member), ConnectGroupSpec):
        raise ScenarioError(f"{happening.member!r} is a consumer: only Connect workers serve REST")
    _known("method", happening.method, list(REST_METHODS))
    if not happening.target.startswith("/"):
        raise ScenarioError(f"target of RestRequest={happening.target!r}: must begin with /")


def _group(scenario: UncheckedScenario, group_id: str) -> GroupSpec:
    _known("group", group_id, [group.group_id for group in scenario.groups])
    return next(group for group in scenario.groups if group.group_id == group_id)


def _check_subscription(scenario: UncheckedScenario, happening: ChangeSubscription) -> None:
    _check_member(scenario, happening.member)
    if not isinstance(scenario.group_of(happening.member), ConsumerGroupSpec):
        raise ScenarioError(f"{happening.member!r} is a Connect worker: only consumers subscribe")
    if not happening.topics:
        raise ScenarioError("ChangeSubscription without topics: name one, or stop the member")
    for topic in happening.topics:
        _known("topic", topic, [spec.name for spec in scenario.topics])


def _check_connector(scenario: UncheckedScenario, happening: ConnectorHappening) -> None:
    group = _group(scenario, happening.group_id)
    if not isinstance(group, ConnectGroupSpec):
        raise ScenarioError(f"group {group.group_id!r} is no Connect cluster: it has no connectors")
    added = _added_connectors(scenario, group)
    if isinstance(happening, AddConnector):
        if happening.connector in group.connectors:
            raise ScenarioError(
                f"connector {happening.connector!r} exists from the start: use ChangeTaskCount"
            )
    else:
        _known("connector", happening.connector, [*group.connectors, *added])
    if isinstance(happening, FailWork):
        _within(f"task of {happening.connector!r}", happening.task or 0, 0, MAX_PARTITIONS)
    elif not isinstance(happening, RemoveConnector):
        _within(f"tasks of {happening.connector!r}", happening.tasks, 0, MAX_PARTITIONS)


def _check_cut(scenario: UncheckedScenario, happening: PartitionNetwork) -> None:
    if happening.member is None and happening.broker is None:
        raise ScenarioError("PartitionNetwork names neither member nor broker: give one")
    if happening.member is not None:
        _check_member(scenario, happening.member)
    if happening.broker is not None:
        _within("broker of PartitionNetwork", happening.broker, 1, scenario.brokers)
    _within("for_ms of PartitionNetwork", happening.for_ms, 1, MAX_TIME_MS)


def _check_move(scenario: UncheckedScenario, happening: MoveCoordinator) -> None:
    _check_offsets_partition(scenario, happening)
    if happening.to_broker is not None:
        _within("to_broker of MoveCoordinator", happening.to_broker, 1, scenario.brokers)


def _check_offsets_partition(
    scenario: UncheckedScenario, happening: MoveCoordinator | HoldReplication
) -> None:
    kind = type(happening).__name__
    if (happening.group_id is None) == (happening.partition is None):
        raise ScenarioError(f"{kind} needs a group_id or a partition, and not both")
    if happening.group_id is not None:
        _group(scenario, happening.group_id)
    if happening.partition is not None:
        count = int_setting(
            scenario.broker_settings, "offsets.topic.num.partitions", DEFAULT_OFFSETS_PARTITIONS
        )
        _within(f"partition of {kind}", happening.partition, 0, count - 1)
