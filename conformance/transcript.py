"""Transcripts: a story of commands and their effects, as a text file.

A paragraph is a command, a line of dashes, and the observed lines. `run_transcript` runs the
commands of such a text and writes the observed lines anew; a test compares, and a flag rewrites.

Commands (durations are `250ms`, `3s` or `5m`):

    broker delay=3s max-size=2 profile=4.4     settings, before anything else
    join GROUP as=NAME session=10s rebalance=60s protocols=range,sticky version=9 instance=i1
    join GROUP as=NAME fresh                   forgets the id NAME had: a restarted process
    sync NAME [leader] [generation=2]          `leader` brings an assignment for every member
    heartbeat NAME [old] [generation=2]        `old`: with the id it had before `fresh`
    leave NAME...
    commit NAME t-0=5 t-1=7
    fetch GROUP
    advance 3s
    resign GROUP    elect GROUP    hold on|off    replicate GROUP    fail ERROR_NAME
    state GROUP     log GROUP      timers
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ScenarioError
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile, profile_named
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from coordinator_sim.messages.records import LogRecord, OpaqueKey
from coordinator_sim.messages.requests import GroupRequest
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.story import story_line

SEPARATOR: Final = "----"
_DURATION: Final = re.compile(r"(\d+)(ms|s|m)")
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000}
_QUIET: Final = {
    Event.LOAD_START,
    Event.LOAD_DONE,
    Event.COORD_RESIGNED,
    Event.UNLOAD_DONE,
    Event.LIFECYCLE,
}
_NAMING: Final = {Event.MEMBER_ID_ASSIGNED, Event.MEMBER_ADDED, Event.STATIC_REPLACED}


def duration_ms(text: str) -> int:
    """Return the milliseconds of `250ms`, `3s` or `5m`.

    Raises:
        ScenarioError: the text has another form.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ScenarioError(f"duration {text!r}: write 250ms, 3s or 5m")
    return int(match[1]) * _UNITS[match[2]]


@dataclass(slots=True)
class Actor:
    """A member of the story: its name, and its knowledge of its membership."""

    name: str
    group_id: str
    member_id: str = ""
    old_member_id: str = ""
    group_instance_id: str | None = None
    generation_id: int = -1


@dataclass(slots=True)
class Command:
    """One command line: a verb, plain words, and settings."""

    verb: str
    words: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, line: str) -> "Command":
        """Read a command line."""
        verb, *rest = line.split()
        command = cls(verb)
        for part in rest:
            key, equals, value = part.partition("=")
            if equals:
                command.settings[key] = value
            else:
                command.words.append(part)
        return command

    def ms(self, key: str, default_ms: int) -> int:
        """Return a duration among the settings."""
        text = self.settings.get(key)
        return default_ms if text is None else duration_ms(text)

    def number(self, key: str, default: int) -> int:
        """Return a number among the settings."""
        return int(self.settings.get(key, default))


class Transcript:
    """The world of one transcript while it runs."""

    def __init__(self) -> None:
        self._harness: Harness | None = None
        self._profile = DEFAULT_PROFILE
        self._actors: dict[str, Actor] = {}
        self._waiting: dict[int, Actor] = {}
        self._names: dict[str, str] = {}

    def run(self, line: str) -> list[str]:
        """Run a command and return the observed lines.

        Raises:
            ScenarioError: the command is unknown.
        """
        command = Command.parse(line)
        if command.verb == "broker":
            self._profile = profile_named(command.settings.get("profile", DEFAULT_PROFILE.name))
            self._harness = _make_harness(command, self._profile)
            return []
        handler = getattr(self, f"_do_{command.verb}", None)
        if handler is None:
            raise ScenarioError(f"unknown transcript command {command.verb!r} in {line!r}")
        outcome: Step | list[str] = handler(command)
        return outcome if isinstance(outcome, list) else list(self._observed(outcome))

    @property
    def harness(self) -> Harness:
        """The broker, with default settings if the transcript gave none."""
        if self._harness is None:
            self._harness = _make_harness(Command("broker"), self._profile)
        return self._harness

    def _observed(self, step: Step) -> Iterator[str]:
        for reply in step.replies:
            actor = self._waiting.pop(reply.token, None)
            response = reply.response
            if actor is not None and isinstance(response, JoinGroupResponse):
                if response.member_id:
                    actor.member_id = response.member_id
                if response.error_code is ErrorCode.NONE:
                    actor.generation_id = response.generation_id
        for event in step.events:
            self._learn(event)
            if event.event not in _QUIET:
                yield story_line(event, self._names)

    def _learn(self, event: TraceEvent) -> None:
        """Map a new member id to its actor, whose name is the client id."""
        member_id = event.member_id
        if event.event in _NAMING and member_id and event.client_id:
            self._names[member_id] = event.client_id
        if event.event is Event.STATIC_REPLACED:
            for old_id, name in list(self._names.items()):
                if name == event.client_id and old_id != member_id:
                    self._names[old_id] = f"{name}(old)"

    def _call(self, request: GroupRequest, version: int, client_id: str = "client") -> Step:
        """Send a request in that version, or the newest that the profile's brokers offer."""
        newest = versions_of(self._profile)[request.api_key][1]
        return self.harness.call(request, api_version=min(version, newest), client_id=client_id)

    # -- requests --------------------------------------------------------------------------

    def _do_join(self, command: Command) -> Step:
        name = command.settings["as"]
        actor = self._actors.setdefault(name, Actor(name, command.words[0]))
        if "fresh" in command.words:
            actor.old_member_id, actor.member_id = actor.member_id, ""
        actor.group_instance_id = command.settings.get("instance", actor.group_instance_id)
        request = JoinGroupRequest(
            group_id=actor.group_id,
            session_timeout_ms=command.ms("session", 45_000),
            rebalance_timeout_ms=command.ms("rebalance", 60_000),
            member_id=actor.member_id,
            group_instance_id=actor.group_instance_id,
            protocol_type=command.settings.get("type", "consumer"),
            protocols=tuple(
                JoinGroupRequestProtocol(protocol, f"topics of {name}".encode())
                for protocol in command.settings.get("protocols", "range").split(",")
            ),
            reason=command.settings.get("reason"),
        )
        self._waiting[self.harness.next_token] = actor
        version = command.number("version", 9)
        return self._call(request, version, name)

    def _do_sync(self, command: Command) -> Step:
        actor = self._actors[command.words[0]]
        assignments: tuple[SyncGroupRequestAssignment, ...] = ()
        if "leader" in command.words:
            assignments = tuple(
                SyncGroupRequestAssignment(other.member_id, f"work of {other.name}".encode())
                for other in self._actors.values()
                if other.group_id == actor.group_id and other.member_id
            )
        request = SyncGroupRequest(
            group_id=actor.group_id,
            generation_id=command.number("generation", actor.generation_id),
            member_id=actor.member_id,
            group_instance_id=actor.group_instance_id,
            assignments=assignments,
        )
        return self._call(request, 4, actor.name)

    def _do_heartbeat(self, command: Command) -> Step:
        actor = self._actors[command.words[0]]
        request = HeartbeatRequest(
            group_id=actor.group_id,
            generation_id=command.number("generation", actor.generation_id),
            member_id=actor.old_member_id if "old" in command.words else actor.member_id,
            group_instance_id=actor.group_instance_id,
        )
        return self._call(request, 4, actor.name)

    def _do_leave(self, command: Command) -> Step:
        actors = [self._actors[name] for name in command.words]
        request = LeaveGroupRequest(
            group_id=actors[0].group_id,
            members=tuple(
                MemberIdentity(
                    member_id=actor.member_id,
                    group_instance_id=actor.group_instance_id,
                    reason=command.settings.get("reason"),
                )
                for actor in actors
            ),
        )
        return self._call(request, 5, actors[0].name)

    def _do_commit(self, command: Command) -> Step:
        actor = self._actors[command.words[0]]
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for place, offset in command.settings.items():
            topic, _, partition = place.rpartition("-")
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(int(partition), int(offset))
            )
        request = OffsetCommitRequest(
            group_id=actor.group_id,
            generation_id_or_member_epoch=actor.generation_id,
            member_id=actor.member_id,
            group_instance_id=actor.group_instance_id,
            topics=tuple(
                OffsetCommitRequestTopic(name, partitions=tuple(found))
                for name, found in topics.items()
            ),
        )
        return self._call(request, 9, actor.name)

    def _do_fetch(self, command: Command) -> Step:
        request = OffsetFetchRequest(
            groups=(OffsetFetchRequestGroup(group_id=command.words[0], topics=None),)
        )
        return self._call(request, 9)

    # -- the broker ------------------------------------------------------------------------

    def _do_advance(self, command: Command) -> Step:
        return self.harness.advance(duration_ms(command.words[0]))

    def _do_resign(self, command: Command) -> Step:
        return self.harness.resign(self.harness.partition_of(command.words[0]))

    def _do_elect(self, command: Command) -> Step:
        epoch = command.number("epoch", 2)
        return self.harness.elect(self.harness.partition_of(command.words[0]), epoch)

    def _do_hold(self, command: Command) -> list[str]:
        self.harness.hold(high_watermark=command.words == ["on"])
        return []

    def _do_replicate(self, command: Command) -> Step:
        return self.harness.commit(self.harness.partition_of(command.words[0]))

    def _do_fail(self, command: Command) -> list[str]:
        self.harness.fail_appends(ErrorCode[command.words[0]])
        return []

    # -- looking ---------------------------------------------------------------------------

    def _do_state(self, command: Command) -> list[str]:
        group = self.harness.coordinator.group(command.words[0])
        if group is None:
            return ["no such group"]
        leader = self._name(group.leader_id)
        lines = [f"{group.state.value}  generation {group.generation_id}  leader {leader}"]
        for member in group.ordered():
            waits = [
                word
                for word, parked in (
                    ("awaiting join", member.awaiting_join),
                    ("awaiting sync", member.awaiting_sync),
                )
                if parked is not None
            ]
            assignment = member.assignment.decode() or "nothing"
            lines.append("  ".join([f"  {self._name(member.member_id)}", assignment, *waits]))
        lines.extend(f"  {self._name(member_id)}  pending" for member_id in group.pending_members)
        return lines

    def _do_log(self, command: Command) -> list[str]:
        harness = self.harness
        lines: list[str] = []
        for batch in harness.log(harness.partition_of(command.words[0])):
            for index, record in enumerate(batch.records):
                lines.append(f"{batch.base_offset + index:>3}  {self._record(record)}")
        return lines

    def _do_timers(self, command: Command) -> list[str]:  # noqa: ARG002 - takes no settings
        return [
            f"{timer.deadline_ms / 1_000:>10.3f}  {timer.key.kind.value}  "
            f"{timer.key.group_id} {self._name(timer.key.member_id)}".rstrip()
            for timer in self.harness.timers()
        ]

    def _record(self, record: LogRecord) -> str:
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            if not isinstance(value, GroupMetadataValue):
                return f"group {key.group}  tombstone"
            members = ", ".join(self._name(member.member_id) for member in value.members)
            leader = self._name(value.leader)
            return (
                f"group {key.group}  generation {value.generation}  leader {leader}  "
                f"members {members or '-'}"
            )
        if isinstance(key, OpaqueKey):
            return f"record of type {key.version}"
        if not isinstance(key, OffsetCommitKey):
            outcome = "  tombstone" if value is None else ""
            return f"{type(key).__name__.removesuffix('Key')} {key.group_id}{outcome}"
        place = f"offset {key.group} {key.topic}-{key.partition}"
        if not isinstance(value, OffsetCommitValue):
            return f"{place}  tombstone"
        return f"{place}  {value.offset}"

    def _name(self, member_id: str | None) -> str:
        return "-" if not member_id else self._names.get(member_id, member_id)


def _make_harness(command: Command, profile: Profile) -> Harness:
    """Return a broker with one offsets partition and the settings of a `broker` command."""
    config = CoordinatorConfig(
        group_initial_rebalance_delay_ms=command.ms("delay", 3_000),
        group_min_session_timeout_ms=command.ms("min-session", 6_000),
        offsets_commit_timeout_ms=command.ms("commit-timeout", 5_000),
        group_max_size=command.number("max-size", 2_147_483_647),
        offsets_topic_num_partitions=1,
    )
    harness = Harness(config, profile, seed=1, start_ms=0)
    harness.advance(0)  # drops the events of the first election
    return harness


def run_transcript(text: str) -> str:
    """Run a transcript's commands and return it with the lines observed this time.

    Comment lines (`#`) and the commands are kept as they are; each command's old observed lines
    are dropped.
    """
    world = Transcript()
    blocks: list[str] = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.splitlines()
        comments = [line for line in lines if line.startswith("#")]
        commands = [line for line in lines if not line.startswith("#")]
        if not commands:
            blocks.append("\n".join(comments))
            continue
        command = commands[0]
        blocks.append("\n".join([*comments, command, SEPARATOR, *world.run(command)]))
    return "\n\n".join(blocks) + "\n"
