"""The ops of the line protocol that drive a world step by step; see `stepped`.

Ops: clock, fire, background, refuse, replay, expire, topicsDeleted, open, assignors, prepare,
timers, groupConfig.
They are for a world that `init` made with `stepped`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from coordinator_sim.assignors.streams_sticky import AssignedTasks
from coordinator_sim.coordinator.contract import DeletedTopic
from coordinator_sim.coordinator.properties import configured
from coordinator_sim.harness import line_fields as fields
from coordinator_sim.harness.harness import Step
from coordinator_sim.harness.kafka_json import read_records
from coordinator_sim.harness.kafka_json.topic_ids import topic_id_of
from coordinator_sim.harness.line_fields import Json, LineError
from coordinator_sim.harness.stepped import Prepared, SteppedHarness, timer_name
from coordinator_sim.messages.records import NO_PRODUCER_ID, EndTransactionMarker

_COMMIT: Final = "COMMIT"
_CONTROLS: Final = (_COMMIT, "ABORT")

Verb = Callable[[SteppedHarness, Json, Json], Step | None]


def _clock(world: SteppedHarness, command: Json, _answer: Json) -> Step:
    return world.set_clock(fields.number(command, "at"))


def _fire(world: SteppedHarness, command: Json, _answer: Json) -> Step:
    return world.fire(fields.text(command, "timer"))


def _background(world: SteppedHarness, _command: Json, _answer: Json) -> Step:
    return world.run_in_background()


def _refuse(world: SteppedHarness, command: Json, _answer: Json) -> Step:
    return world.refuse(0, fields.error_code(command, "error"))


def _replay(world: SteppedHarness, command: Json, _answer: Json) -> Step:
    marker = None
    if "control" in command:
        control = fields.text(command, "control")
        if control not in _CONTROLS:
            raise LineError(f"control {control!r}: use one of {', '.join(_CONTROLS)}")
        marker = EndTransactionMarker(committed=control == _COMMIT)
    return world.replay(
        0,
        read_records(fields.objects(command, "records")),
        producer_id=fields.number(command, "producerId", NO_PRODUCER_ID),
        marker=marker,
    )


def _expire(world: SteppedHarness, _command: Json, _answer: Json) -> Step:
    return world.expire_offsets(0)


def _topics_deleted(world: SteppedHarness, command: Json, _answer: Json) -> Step:
    topics = fields.objects(command, "topics")
    named = {fields.text(topic, "name"): topic for topic in topics}
    return world.delete_topics(
        {name: DeletedTopic(topic_id_of(topic, name)) for name, topic in named.items()}
    )


def _open(world: SteppedHarness, _command: Json, _answer: Json) -> Step:
    return world.open(0)


def _assignors(world: SteppedHarness, command: Json, _answer: Json) -> None:
    world.use_prepared_assignors(fields.texts(command, "names"))


def _prepare(world: SteppedHarness, command: Json, _answer: Json) -> None:
    protocol = fields.text(command, "protocol")
    if protocol not in _TARGETS:
        raise LineError(f"protocol {protocol!r}: use one of {', '.join(_TARGETS)}")
    if "fails" in command:
        world.results.add(Prepared(protocol, failure=fields.text(command, "fails")))
        return
    members = fields.object_of(command, "members")
    read = _TARGETS[protocol]
    targets = {member: read(fields.object_of(members, member)) for member in members}
    world.results.add(Prepared(protocol, targets))


def _by_topic_id(target: Json) -> dict[bytes, list[int]]:
    return {topic_id_of({"id": each}, each): fields.numbers(target, each) for each in target}


def _of_share(target: Json) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    return tuple((topic, tuple(each)) for topic, each in _by_topic_id(target).items())


def _of_streams(target: Json) -> AssignedTasks:
    roles: dict[str, dict[str, frozenset[int]]] = {}
    for role in ("active", "standby", "warmup"):
        tasks = fields.object_of(target, role)
        roles[role] = {name: frozenset(fields.numbers(tasks, name)) for name in tasks}
    return AssignedTasks(**roles)


_TARGETS: Final[Mapping[str, Callable[[Json], Any]]] = {
    "consumer": _by_topic_id,
    "share": _of_share,
    "streams": _of_streams,
}
"""How the target of a member is read, by protocol."""


def _timers(world: SteppedHarness, _command: Json, answer: Json) -> None:
    named = ((timer_name(timer), timer.deadline_ms) for timer in world.timers())
    answer["timers"] = {name: deadline_ms for name, deadline_ms in named if name is not None}
    answer["prepared"] = len(world.results)


def _group_config(world: SteppedHarness, command: Json, _answer: Json) -> None:
    own = fields.object_of(command, "config")
    properties = {f"group.{name}": str(value) for name, value in own.items()}
    group_id = fields.text(command, "group")
    world.coordinator.reconfigure(
        world.config, {group_id: configured(world.config, properties) if own else None}
    )


STEPPED_VERBS: Final[Mapping[str, Verb]] = {
    "clock": _clock,
    "fire": _fire,
    "background": _background,
    "refuse": _refuse,
    "replay": _replay,
    "expire": _expire,
    "topicsDeleted": _topics_deleted,
    "open": _open,
    "assignors": _assignors,
    "prepare": _prepare,
    "timers": _timers,
    "groupConfig": _group_config,
}
