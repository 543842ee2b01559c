"""Checks that a scenario describes a possible world.

Every message names the value, the bound and the fix.
"""

import re
from typing import Final

import msgspec

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.clients.config import CLASSIC, CONSUMER
from coordinator_sim.clients.consumer_models import NEW_CLIENTS
from coordinator_sim.errors import INVALID_PATTERN, ConfigError, ScenarioError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.sim.scenario import checks, world
from coordinator_sim.sim.scenario.happening_checks import check_happening
from coordinator_sim.sim.scenario.happenings import RestartMember, StartMember
from coordinator_sim.sim.scenario.quantiles import check_table
from coordinator_sim.sim.scenario.settings import (
    CONNECT_PROTOCOLS,
    Scope,
    check_settings,
)
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.variety import check_variety
from coordinator_sim.sim.scenario.work import (
    SinkWork,
    check_commits,
    check_connector_work,
    check_processing,
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
MAX_BROKERS: Final = 1_000
"""More brokers than any cluster; node ids stay apart from coordinator connections."""
MAX_RECORDS: Final = 10_000_000_000
"""Records of an internal topic: counted, but fetched a MiB at a time."""
MAX_RECORD_BYTES: Final = 1_000_000
MIN_SEGMENT_BYTES: Final = 1 << 20
MAX_SEGMENT_BYTES: Final = (1 << 31) - 1
_MAX_SEGMENTS: Final = 10_000
"""Limit of about `max.message.bytes`."""


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
    checks.within("duration_ms", scenario.duration_ms, 1, checks.MAX_TIME_MS)
    checks.within("brokers", scenario.brokers, 1, MAX_BROKERS)
    checks.within("load_ms", scenario.load_ms, 0, checks.MAX_TIME_MS)
    checks.within("failover_ms", scenario.failover_ms, 0, checks.MAX_TIME_MS)
    profile_named(scenario.profile)
    check_settings(Scope.BROKER, scenario.broker_settings)
    _check_latency("network.latency", scenario.network.latency)
    if scenario.variety is not None:
        check_variety(scenario.variety)
        _check_latency("variety.latency", scenario.variety.latency)
    _check_topics(scenario)
    _check_groups(scenario)
    _check_workloads(scenario)
    for happening in scenario.happenings:
        check_happening(scenario, happening)
        if isinstance(happening, StartMember | RestartMember) and happening.settings:
            # A group of this member alone, with these settings, is checked like any other.
            group = _alone(scenario, happening.member)
            changed = (
                world.with_new_configuration(group, happening.settings)
                if isinstance(group, world.ConsumerGroupSpec)
                else world.with_member_settings(group, happening.settings)
            )
            _check_group(scenario, changed)


def _alone(scenario: UncheckedScenario, name: str) -> world.GroupSpec:
    """The group of a member, without the others."""
    group, spec = scenario.group_of(name), scenario.members_by_name[name]
    field = "members" if isinstance(group, world.ConsumerGroupSpec) else "workers"
    return msgspec.structs.replace(group, **{field: (spec,)})


def _check_latency(name: str, latency: world.LatencyLaw) -> None:
    match latency:
        case world.ConstantLatency(us=us):
            checks.within(f"{name}.us", us, 0, checks.MAX_TIME_MS)
        case world.UniformLatency(low_us=low_us, high_us=high_us):
            checks.within(f"{name}.low_us", low_us, 0, checks.MAX_TIME_MS)
            checks.within(f"{name}.high_us", high_us, low_us, checks.MAX_TIME_MS)
        case world.TableLatency(quantiles_us=quantiles):
            check_table(f"{name}.quantiles_us", quantiles, 0, checks.MAX_TIME_MS)


def _check_topics(scenario: UncheckedScenario) -> None:
    checks.unique("topic", [topic.name for topic in scenario.topics])
    for topic in scenario.topics:
        checks.check_name_of_topic(topic.name)
        checks.within(
            f"partitions of topic {topic.name!r}", topic.partitions, 1, checks.MAX_PARTITIONS
        )
        checks.within(f"records_per_s of topic {topic.name!r}", topic.records_per_s, 0, 10**9)


def _check_groups(scenario: UncheckedScenario) -> None:
    checks.unique("group", [group.group_id for group in scenario.groups])
    checks.unique("member", [member.name for member in scenario.members()])
    for group in scenario.groups:
        for member in world.members_of(group):
            if member.start_ms is not None:
                checks.within(
                    f"start_ms of {member.name!r}", member.start_ms, 0, checks.MAX_TIME_MS
                )
        _check_group(scenario, group)


def _check_workloads(scenario: UncheckedScenario) -> None:
    checks.unique("process", scenario.processes())
    for task in scenario.workloads:
        checks.within(f"startMs of task {task.id!r}", task.parsed.start_ms, 0, scenario.duration_ms)


def _check_group(scenario: UncheckedScenario, group: world.GroupSpec) -> None:
    match group:
        case world.ConsumerGroupSpec():
            _check_consumers(scenario, group)
        case world.ConnectGroupSpec():
            _check_connect(group)
            _check_internal_topics(group)
            _check_work(scenario, group)


def _check_consumers(scenario: UncheckedScenario, group: world.ConsumerGroupSpec) -> None:
    topics = scenario.partitions_by_topic
    if not group.assignors:
        raise ConfigError(
            f"group {group.group_id!r} has no assignor: name one of {', '.join(CONSUMER_ASSIGNORS)}"
        )
    for assignor in group.assignors:
        if assignor not in CONSUMER_ASSIGNORS:
            raise ConfigError(
                f"unknown assignor {assignor!r}: use one of {', '.join(CONSUMER_ASSIGNORS)}; your "
                "own is made known by --assignor-from or --assignor-process"
            )
        if group.assignors.count(assignor) > 1:
            raise ConfigError(
                f"group {group.group_id!r} has the assignor {assignor!r} twice: remove one"
            )
    check_settings(Scope.CONSUMER, group.settings)
    for topic in group.topics:
        checks.known("topic", topic, topics)
    _check_pattern(group)
    instances = [m.instance_id for m in group.members if m.instance_id is not None]
    checks.unique(f"instance id of group {group.group_id!r}", instances)
    for member in group.members:
        check_settings(Scope.CONSUMER, {**group.settings, **member.settings})
        checks.within(
            f"processing_ms of {member.name!r}", member.processing_ms, 0, checks.MAX_TIME_MS
        )
        checks.within(f"callback_ms of {member.name!r}", member.callback_ms, 0, checks.MAX_TIME_MS)
        check_commits(member.name, member.commits)
        if member.processing is not None:
            check_processing(member.name, member.processing)
        for topic in member.topics or ():
            checks.known("topic", topic, topics)
    _check_new_members(scenario, group)
    _check_librdkafka(group)


def _check_new_members(scenario: UncheckedScenario, group: world.ConsumerGroupSpec) -> None:
    """Refuse members of the consumer protocol where brokers or clients cannot do it."""
    for member in group.members:
        if not _is_new(group, member):
            continue
        if not profile_named(scenario.profile).has_coordinator_runtime:
            raise ScenarioError(
                f"{member.name!r} has group.protocol={CONSUMER}: brokers of profile "
                f"{scenario.profile!r} have no such groups; use profile 4.0 or a later one"
            )
        if member.client not in NEW_CLIENTS:
            raise ScenarioError(
                f"{member.name!r} has group.protocol={CONSUMER}: client {member.client!r} is "
                f"modelled with the classic protocol alone; use {' or '.join(NEW_CLIENTS)}"
            )


def _is_new(group: world.ConsumerGroupSpec, member: world.ConsumerSpec) -> bool:
    """Whether a member speaks the consumer protocol."""
    settings = {**group.settings, **member.settings}
    return settings.get("group.protocol", CLASSIC) != CLASSIC


def _check_pattern(group: world.ConsumerGroupSpec) -> None:
    if group.pattern is None:
        return
    if group.topics or any(member.topics for member in group.members):
        raise ScenarioError(f"group {group.group_id!r} has topics and a pattern: give one of them")
    for member in group.members:
        is_read = member.client == "java" or _is_new(group, member)
        if not is_read:
            raise ScenarioError(
                f"pattern of group {group.group_id!r}: {member.client} consumers have one with "
                f"group.protocol={CONSUMER} alone; use client 'java'"
            )
    try:
        re.compile(group.pattern)
    except INVALID_PATTERN as error:
        raise ScenarioError(f"pattern {group.pattern!r}: {error}") from error


def _check_librdkafka(group: world.ConsumerGroupSpec) -> None:
    """Refuse assignors that librdkafka lacks, or does not allow together.

    Source: librdkafka 2.15, rdkafka_assignor.c, rd_kafka_assignors_init.
    """
    if not any(m.client == "librdkafka" and not _is_new(group, m) for m in group.members):
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


def _check_connect(group: world.ConnectGroupSpec) -> None:
    if group.connect_protocol not in CONNECT_PROTOCOLS:
        raise ConfigError(
            f"connect.protocol={group.connect_protocol}: "
            f"must be one of {', '.join(CONNECT_PROTOCOLS)}"
        )
    check_settings(Scope.CONNECT, group.settings)
    for worker in group.workers:
        check_settings(Scope.CONNECT, {**group.settings, **worker.settings})
    for connector, tasks in group.connectors.items():
        checks.within(f"tasks of connector {connector!r}", tasks, 0, checks.MAX_PARTITIONS)


def _check_history(topics: world.InternalTopicsSpec, history: world.OffsetHistory) -> None:
    where = "internal_topics.offset_history"
    if topics.offset_records or topics.offset_end is not None or not topics.exist:
        raise ScenarioError(
            f"{where} stands beside offset_records or offset_end, or beside exist=false: "
            "say how many records there are, or how they came to be"
        )
    checks.within(f"{where}.source_partitions", history.source_partitions, 1, MAX_RECORDS)
    checks.within(f"{where}.written_ms", history.written_ms, 0, checks.MAX_TIME_MS)
    checks.within(f"{where}.commit_every_ms", history.commit_every_ms, 1, checks.MAX_TIME_MS)
    checks.within(f"{where}.segment_ms", history.segment_ms, 1, checks.MAX_TIME_MS)
    checks.within(
        f"{where}.segment_bytes", history.segment_bytes, MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES
    )
    written = history.source_partitions * (history.written_ms // history.commit_every_ms)
    checks.within(f"records written by {where}", written, 0, MAX_RECORDS)
    by_size = written * (topics.offset_record_bytes + 1) // history.segment_bytes
    by_time = history.written_ms // max(history.segment_ms, history.commit_every_ms)
    checks.within(f"segments written by {where}", by_size + by_time, 0, _MAX_SEGMENTS)
    if not 0 <= history.min_cleanable_dirty_ratio <= 1:
        raise ScenarioError(
            f"{where}.min_cleanable_dirty_ratio={history.min_cleanable_dirty_ratio}: "
            "must be from 0 to 1"
        )


def _check_internal_topics(group: world.ConnectGroupSpec) -> None:
    topics = group.internal_topics
    for name in ("offset_partitions", "status_partitions"):
        checks.within(f"internal_topics.{name}", getattr(topics, name), 1, checks.MAX_PARTITIONS)
    for name in ("offset", "status", "config"):
        records = getattr(topics, f"{name}_records")
        checks.within(f"internal_topics.{name}_records", records, 0, MAX_RECORDS)
        size = getattr(topics, f"{name}_record_bytes")
        checks.within(f"internal_topics.{name}_record_bytes", size, 0, MAX_RECORD_BYTES)
        if records and not topics.exist:
            raise ScenarioError(
                f"internal_topics.{name}_records={records}: topics that do not exist have none"
            )
    if topics.compact_every_ms is not None:
        checks.within(
            "internal_topics.compact_every_ms", topics.compact_every_ms, 1, checks.MAX_TIME_MS
        )
    if topics.offset_history is not None:
        _check_history(topics, topics.offset_history)
    if topics.offset_end is not None:
        low = topics.offset_records
        checks.within("internal_topics.offset_end", topics.offset_end, low, MAX_RECORDS)
    if group.connectors and not topics.exist:
        raise ScenarioError(
            f"connectors of {group.group_id!r}: topics that do not exist hold none; add them with "
            "AddConnector once a worker has created the topics"
        )
    costs = topics.costs
    for name in costs.__struct_fields__:
        low = 1 if name.endswith(("bytes", "bytes_per_s")) else 0
        checks.within(f"internal_topics.costs.{name}", getattr(costs, name), low, 10**15)


def _check_work(scenario: UncheckedScenario, group: world.ConnectGroupSpec) -> None:
    topics = scenario.partitions_by_topic
    for connector, work in group.work.items():
        checks.known(
            "connector", connector, [*group.connectors, *checks.added_connectors(scenario, group)]
        )
        check_connector_work(connector, work)
        for topic in work.topics if isinstance(work, SinkWork) else (work.topic,):
            checks.known("topic", topic, topics)
