"""What the members of a streams group shall have.

Source: kafka 4.4, group-coordinator/.../streams/TargetAssignmentBuilder.java and
GroupMetadataManager.maybeUpdateStreamsTargetAssignment, streamsGroupAssignmentConfigs.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.assignors.streams_sticky import (
    AskedSubtopology,
    AskingMember,
    AssignedTasks,
)
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsGroupMember
from coordinator_sim.coordinator.streams.tasks import NOTHING_WANTED, Tasks, numbers_of
from coordinator_sim.coordinator.streams.timers import is_delayed
from coordinator_sim.coordinator.streams.topology import ConfiguredTopology
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.records import LogRecord

ASSIGNOR: Final = "sticky"
"""The only task assignor that Kafka has."""
STANDBY_SETTING: Final = "num.standby.replicas"
TAGS_SETTING: Final = "rack.aware.assignment.tags"

_FIRST_MEMBER_EPOCH: Final = 1
_DELAYED: Final = "Assignment delayed due to the configured initial rebalance delay."
_TOO_SOON: Final = "Assignment delayed due to the configured assignment interval."


class Aim(Struct, frozen=True):
    """Where the members go.

    Args:
        epoch: Of the target.
        targets: What each member shall have; nothing where it has no entry.
        delay: Why it is not of the group's epoch yet, in Kafka's words; None if it is.
    """

    epoch: int
    targets: dict[str, Tasks]
    delay: str | None = None


def assignment_settings(runtime: Runtime, group_id: str) -> dict[str, str]:
    """The settings that an assignment of a group depends on, by name."""
    config = runtime.config_of(group_id)
    settings = {STANDBY_SETTING: str(config.group_streams_num_standby_replicas)}
    if config.group_streams_rack_aware_assignment_tags:
        settings[TAGS_SETTING] = ",".join(config.group_streams_rack_aware_assignment_tags)
    return settings


class Question(Struct, frozen=True):
    """What a target is computed of.

    Args:
        group: As it is.
        epoch: Of the group, which may not be in its records yet.
        updated: A member that is not in the records yet; None when time asks.
        configured: The topology with the topics that there are.
        settings: Of the assignment, by name.
    """

    group: StreamsGroup
    epoch: int
    updated: StreamsGroupMember | None
    configured: ConfiguredTopology
    settings: Mapping[str, str]


def updated_target(runtime: Runtime, question: Question, records: list[LogRecord]) -> Aim:
    """The last target, or one that is computed now for that epoch and added to the records.

    Source: GroupMetadataManager.maybeUpdateStreamsTargetAssignment.
    """
    group, epoch, updated = question.group, question.epoch, question.updated
    epochs = group.epochs
    has_interval = runtime.profile.streams_assignment_interval
    is_open = epochs.assignment_epoch < epoch or has_interval
    if is_open and is_delayed(runtime, group.group_id):
        return Aim(max(epochs.assignment_epoch, _FIRST_MEMBER_EPOCH), {}, _DELAYED)
    members, before = group.with_member(updated)
    if epochs.assignment_epoch >= epoch:
        return Aim(epochs.assignment_epoch, before)
    interval_ms = runtime.config_of(group.group_id).group_streams_assignment_interval_ms
    if has_interval and not group.is_target_due(runtime.wall_ms, interval_ms):
        return Aim(epochs.assignment_epoch, before, _TOO_SOON)
    found = _computed(runtime, question, members, before)
    now_ms = runtime.wall_ms if has_interval else 0
    records += group.target_records(found, before, epoch, now_ms)
    return Aim(epoch, found)


def _computed(
    runtime: Runtime,
    question: Question,
    members: dict[str, StreamsGroupMember],
    targets: dict[str, Tasks],
) -> dict[str, Tasks]:
    """What each member shall have, in the order in which Kafka writes it."""
    group, configured = question.group, question.configured
    order = java_hash_order(members)
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(order, NOTHING_WANTED)
    by_current = runtime.profile.streams_assigns_by_current_tasks
    asking = {}
    for member_id in order:
        member = members[member_id]
        former = targets.get(member_id, NOTHING_WANTED)
        held = member.assigned
        asking[member_id] = AskingMember(
            process_id=member.process_id or "",
            active=numbers_of(held.active) if by_current else former.active,
            standby=held.standby if by_current else former.standby,
            offsets=group.offsets_of(member_id).offsets,
        )
    asked = {
        name: AskedSubtopology(each.task_count, bool(each.state_changelog_topics))
        for name, each in configured.subtopologies.items()
    }
    copies = int(question.settings.get(STANDBY_SETTING, "0"))
    found = runtime.assignors.streams(asking, asked, copies, is_early=not by_current)
    return {name: _tasks(found.get(name)) for name in order}


def _tasks(assigned: AssignedTasks | None) -> Tasks:
    """Tasks of one member in an assignor's result; none if the result does not name it."""
    if assigned is None:
        return NOTHING_WANTED
    return Tasks(assigned.active, assigned.standby, assigned.warmup)
