"""Plays required behaviours written as short scripts: one command a line, its answers behind `|`.

A case starts at the margin with its id and title; its script is indented:

    SYNC-002 a follower syncs first
      completing A B
      --
      sync B           | -
      sync A A=a B=b   | A NONE work=a; B NONE work=b
      state Stable gen=2
      log group gen=2 leader=A members=A,B

A and B are members. `L:i1` is the member L with instance id i1. A member's first JoinGroup has no
member id, later requests have the one it was given; its generation is the last it was told of.
Behind `|` stands every answer that left with the command, in any order, `-` for none; a line
without `|` may answer anything. An answer names the fields that matter. `--` ends the preparation:
`log` compares the records appended since.

Commands: broker, stable, completing, join, sync, heartbeat, leave, commit, fetch, wait, resign,
elect, load, hold, release, fail, append, force, group. Questions: state, log. Times are
milliseconds. An id names a required behaviour for good; a word behind its dot names a variant.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_sim.protocol.profiles import profile_named
from coordinator_sim.protocol.records import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
    LogRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.protocol.requests import GroupRequest, Response
from coordinator_sim.protocol.states import GroupState

Words = dict[str, str]

_SETTINGS: Final = {
    "delay": "group_initial_rebalance_delay_ms",
    "size": "group_max_size",
    "session_min": "group_min_session_timeout_ms",
    "commit_timeout": "offsets_commit_timeout_ms",
    "partitions": "offsets_topic_num_partitions",
}
_BEAT_MS: Final = 250


@dataclass(frozen=True)
class Case:
    """One required behaviour."""

    case_id: str
    title: str
    script: tuple[str, ...]

    def play(self) -> None:
        """Run the script twice on a broker of its own: the trace must change nothing."""
        for trace in (True, False):
            stage = Stage(trace=trace)
            for line in self.script:
                stage.run(line)


def read_cases(text: str) -> list[Case]:
    """The cases of a text in the form above, in order."""
    cases: list[Case] = []
    for line in filter(None, text.splitlines()):
        if line[0] != " ":
            case_id, title = line.split(maxsplit=1)
            cases.append(Case(case_id, title, ()))
        else:
            last = cases.pop()
            cases.append(Case(last.case_id, last.title, (*last.script, line.strip())))
    return cases


@dataclass
class Actor:
    """A member of the script and what it would send again."""

    member_id: str = ""
    instance_id: str | None = None
    generation_id: int = -1
    protocols: tuple[str, ...] = ("range",)
    metadata: str = ""
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000


@dataclass
class Stage:
    """A broker, the members of group `g`, and whose requests are on their way."""

    trace: bool
    harness: Harness = field(init=False)
    actors: dict[str, Actor] = field(default_factory=dict)
    senders: dict[int, str] = field(default_factory=dict)
    records: list[LogRecord] = field(default_factory=list)
    group: str = "g"

    def __post_init__(self) -> None:
        self.broker([])

    # -- the script ------------------------------------------------------------------------

    def run(self, line: str) -> None:
        """Run one line and compare what left."""
        command, _, wanted = line.partition("|")
        name, *words = command.split()
        if name == "--":
            self.records.clear()
            return
        step = _COMMANDS[name](self, words)
        if step is None:
            return
        answers = [self._answer(reply.token, reply.response) for reply in step.replies]
        self.records += [record for batch in step.batches for record in batch.records]
        if wanted:
            expected = [part.split() for part in wanted.split(";") if part.strip() != "-"]
            _compare(line, expected, answers)

    def broker(self, words: list[str]) -> None:
        """Start over with a broker of these settings, a profile and the topics it knows."""
        options = _options(words)
        profile = profile_named(options.pop("profile", "4.4"))
        topics = filter(None, options.pop("topics", "").split(","))
        settings: dict[str, object] = {
            "group_initial_rebalance_delay_ms": 0,
            "group_min_session_timeout_ms": 100,
            "trace": self.trace,
        }
        settings |= {_SETTINGS[name]: int(value) for name, value in options.items()}
        self.harness = Harness(msgspec.convert(settings, CoordinatorConfig), profile)
        for topic in topics:
            self.harness.set_topic(topic, 2)

    # -- members ---------------------------------------------------------------------------

    def actor(self, word: str) -> Actor:
        """The member of that name, known from now on."""
        label, _, instance_id = word.partition(":")
        actor = self.actors.setdefault(label, Actor())
        if instance_id:
            actor.instance_id = instance_id
        return actor

    def completing(self, words: list[str]) -> None:
        """Bring members in one after the other: as many generations as members, none synced."""
        labels = [word for word in words if "=" not in word]
        options = [word for word in words if "=" in word]
        for count, label in enumerate(labels):
            self._learn(self.join([label, *options]))
            for earlier in labels[:count]:
                self._learn(self.join([earlier]))
            self._learn(self.harness.advance(self.harness.config.group_initial_rebalance_delay_ms))

    def stable(self, words: list[str]) -> None:
        """As `completing`, then everyone syncs; a member's work is its name in lower case."""
        self.completing(words)
        labels = [word.partition(":")[0] for word in words if "=" not in word]
        for label in labels:
            self._learn(self.sync([label, *(f"{name}={name.lower()}" for name in labels)]))

    def join(self, words: list[str]) -> Step:
        """`join A [v= id= type= protocols= meta= session= rebalance= client=]`."""
        label, options = words[0].partition(":")[0], _options(words[1:])
        actor = self.actor(words[0])
        protocols = options.get("protocols", ",".join(actor.protocols))
        actor.protocols = tuple(filter(None, protocols.split(",")))
        actor.metadata = options.get("meta", actor.metadata)
        actor.session_timeout_ms = int(options.get("session", actor.session_timeout_ms))
        actor.rebalance_timeout_ms = int(options.get("rebalance", actor.rebalance_timeout_ms))
        member_id = options.get("id", actor.member_id)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=actor.session_timeout_ms,
            rebalance_timeout_ms=actor.rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=actor.instance_id,
            protocol_type=options.get("type", "consumer"),
            protocols=tuple(
                JoinGroupProtocol(name, f"{name}{actor.metadata}".encode())
                for name in actor.protocols
            ),
        )
        direct = 3 if actor.instance_id is None and not member_id else 9
        known = self._ids_of_group()
        step = self._call(label, request, options, direct)
        actor.member_id = next(iter(self._ids_of_group() - known), actor.member_id)
        return step

    def sync(self, words: list[str]) -> Step:
        """`sync A [gen= v= id= type= name=] [A=work ...]`."""
        label, options = words[0], _options(words[1:])
        actor = self.actor(label)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=int(options.get("gen", actor.generation_id)),
            member_id=options.get("id", actor.member_id),
            group_instance_id=actor.instance_id,
            protocol_type=options.get("type"),
            protocol_name=options.get("name"),
            assignments=tuple(
                SyncGroupAssignment(self._id_of(name), work.encode())
                for name, work in options.items()
                if name[0].isupper()
            ),
        )
        return self._call(label, request, options, 5)

    def heartbeat(self, words: list[str]) -> Step:
        """`heartbeat A [gen= id=]`."""
        label, options = words[0], _options(words[1:])
        actor = self.actor(label)
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=int(options.get("gen", actor.generation_id)),
            member_id=options.get("id", actor.member_id),
            group_instance_id=actor.instance_id,
        )
        return self._call(label, request, options, 4)

    def leave(self, words: list[str]) -> Step:
        """`leave A :i1 ghost:i2 [v=]`: members, instances alone, or made-up ids."""
        entries = [word for word in words if "=" not in word]
        request = LeaveGroupRequest(
            group_id=self.group,
            members=tuple(
                LeavingMember(member_id=self._id_of(name), group_instance_id=instance or None)
                for name, _, instance in (entry.partition(":") for entry in entries)
            ),
        )
        return self._call("leave", request, _options(words), 5)

    def commit(self, words: list[str]) -> Step:
        """`commit A t-0=10 [gen= id= v=]`, `-` for nobody; `meta=4096` is a length, `x` a unit."""
        label, options = words[0], _options(words[1:])
        actor = Actor() if label == "-" else self.actor(label)
        unit = "\U0001f600" if options.get("unit") == "wide" else "x"
        metadata = options.get("meta", "")
        topics: dict[str, list[OffsetCommitPartition]] = {}
        for name, value in options.items():
            if "-" in name:
                topic, _, index = name.partition("-")
                offset, _, length = value.partition("/")
                text = unit * int(length) if length else metadata
                epoch = int(options.get("epoch", -1))
                entry = OffsetCommitPartition(int(index), int(offset), epoch, text)
                topics.setdefault(topic, []).append(entry)
        request = OffsetCommitRequest(
            group_id=self.group,
            topics=tuple(OffsetCommitTopic(topic, tuple(found)) for topic, found in topics.items()),
            generation_id=int(options.get("gen", actor.generation_id)),
            member_id=options.get("id", actor.member_id),
            group_instance_id=options.get("i", actor.instance_id),
        )
        return self._call(label, request, options, 8)

    def fetch(self, words: list[str]) -> Step:
        """`fetch t-0 t-1 [stable=1 groups=g1,g2]`, `*` for everything."""
        options = _options(words)
        names = [word for word in words if "=" not in word]
        topics = tuple(
            OffsetFetchTopic(topic, (int(index),))
            for topic, _, index in (name.partition("-") for name in names)
            if topic != "*"
        )
        groups = tuple(
            OffsetFetchGroup(
                group_id=group,
                topics=topics or None,
                member_id=options.get("member"),
                member_epoch=int(options.get("epoch", -1)),
            )
            for group in options.get("groups", self.group).split(",")
        )
        stable = "stable" in options
        return self._call(
            "fetch", OffsetFetchRequest(groups=groups, require_stable=stable), options, 8
        )

    # -- the broker ------------------------------------------------------------------------

    def wait(self, words: list[str]) -> Step:
        """`wait 1000 [beating=A,B]`: time passes while those members heartbeat."""
        options = _options(words)
        beating = list(filter(None, options.get("beating", "").split(",")))
        left_ms = int(words[0])
        steps: list[Step] = []
        while beating and left_ms > _BEAT_MS:
            steps.append(self.harness.advance(_BEAT_MS))
            left_ms -= _BEAT_MS
            for label in beating:
                step = self.heartbeat([label])
                own = tuple(reply for reply in step.replies if reply.token != step.token)
                steps.append(
                    Step(now_ms=step.now_ms, replies=own, batches=step.batches, events=step.events)
                )
        steps.append(self.harness.advance(left_ms))
        return Step(
            now_ms=self.harness.now_ms,
            replies=tuple(reply for step in steps for reply in step.replies),
            batches=tuple(batch for step in steps for batch in step.batches),
        )

    def resign(self, words: list[str]) -> Step:
        """`resign [epoch=] [group=]`: give up every offsets partition, or one group's."""
        options = _options(words)
        epoch = options.get("epoch")
        return self.harness.resign(self._partition(options), None if epoch is None else int(epoch))

    def elect(self, words: list[str]) -> Step:
        """`elect [epoch=2]`: lead every offsets partition again, from the log."""
        options = _options(words)
        return self.harness.elect(self._partition(options), int(options.get("epoch", "2")))

    def load(self, words: list[str]) -> Step:
        """`load begin` and `load failed`: a load that is under way, or ends with an error."""
        now_ms, index = self.harness.now_ms, self.harness.partition_of(self.group)
        if words[0] == "begin":
            result = self.harness.coordinator.begin_load(index, 9, now_ms)
        else:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            result = self.harness.coordinator.finish_load(index, error, now_ms)
        return Step(now_ms=now_ms, batches=result.batches, events=result.events)

    def hold(self, words: list[str]) -> None:
        """`hold`: nothing is replicated until `release`; `hold off`: what is appended now, is."""
        self.harness.hold(high_watermark=words != ["off"])

    def release(self, words: list[str]) -> Step:
        """`release [to=2]`: replication catches up, or up to that log position."""
        to = _options(words).get("to")
        if to is None:
            return self.harness.commit()
        return self.harness.commit(self.harness.partition_of(self.group), int(to))

    def fail(self, words: list[str]) -> None:
        """`fail ERROR`: the next append fails so."""
        self.harness.fail_appends(ErrorCode[words[0]])

    def append(self, words: list[str]) -> None:
        """`append t-0=5`, `append t-0=`, `append group gen=7 members=A,B`, `append group=`."""
        options = _options(words)
        record: LogRecord
        if words[0] == "group=":
            record = LogRecord(GroupMetadataKey(self.group), None, 0)
        elif words[0] == "group":
            record = self._group_record(options)
        else:
            name, _, offset = words[0].partition("=")
            topic, _, index = name.partition("-")
            value = OffsetCommitValue(offset=int(offset)) if offset else None
            record = LogRecord(OffsetCommitKey(self.group, topic, int(index)), value, 3)
        self.harness.append(self.harness.partition_of(self.group), (record,))

    def force(self, words: list[str]) -> None:
        """`force Dead`: put the group into a state that no request leads to."""
        group = self.harness.coordinator.group(self.group)
        assert group is not None
        group.state = GroupState(words[0])

    def switch_group(self, words: list[str]) -> None:
        """`group g1`: the requests from here on are of another group, `-` for the empty name."""
        self.group = "" if words[0] == "-" else words[0]

    # -- questions -------------------------------------------------------------------------

    def state(self, words: list[str]) -> None:
        """`state Stable [gen= leader= members= pending=]`, `state none`."""
        group = self.harness.coordinator.group(self.group)
        if group is None:
            assert words == ["none"], f"no group, but {words}"
            return
        fields = {
            "gen": str(group.generation_id),
            "leader": self._label(group.leader_id),
            "members": self._labels(group.members),
            "pending": self._labels(group.pending_members),
            "type": group.protocol_type or "-",
        }
        _compare(f"state {words}", [words], [(group.state.value, fields)])

    def log(self, words: list[str]) -> None:
        """`log none`, `log group gen=2 leader=A members=A,B`, `log t-0=10`; records by `;`."""
        text = " ".join(words)
        wanted = [] if text == "none" else [part.split() for part in text.split(";")]
        _compare(f"log {text}", wanted, [self._record(record) for record in self.records])

    # -- inside ----------------------------------------------------------------------------

    def _call(self, label: str, request: GroupRequest, options: Words, version: int) -> Step:
        step = self.harness.call(
            request,
            api_version=int(options.get("v", version)),
            client_id=options.get("client", label),
        )
        assert step.token is not None
        self.senders[step.token] = label
        return step

    def _ids_of_group(self) -> set[str]:
        group = self.harness.coordinator.group(self.group)
        return set() if group is None else {*group.members, *group.pending_members}

    def _learn(self, step: Step) -> None:
        for reply in step.replies:
            self._answer(reply.token, reply.response)

    def _answer(self, token: int, response: Response) -> tuple[str, Words]:
        label = self.senders[token].partition(":")[0]
        fields: Words = {}
        error = ErrorCode.NONE
        match response:
            case JoinGroupResponse():
                error = response.error_code
                fields = self._join_fields(response)
                if error is ErrorCode.NONE:
                    self.actors[label].generation_id = response.generation_id
            case SyncGroupResponse():
                error = response.error_code
                fields = {
                    "work": response.assignment.decode() or "-",
                    "type": response.protocol_type or "-",
                    "name": response.protocol_name or "-",
                }
            case LeaveGroupResponse():
                error = response.error_code
                entries = ",".join(member.error_code.name for member in response.members)
                fields = {"entries": entries or "-"}
            case OffsetCommitResponse():
                fields = {
                    f"{topic.name}-{p.partition}": p.error_code.name
                    for topic in response.topics
                    for p in topic.partitions
                }
            case OffsetFetchResponse():
                fields = dict(_fetched(response))
            case _:
                error = getattr(response, "error_code", ErrorCode.NONE)
        return label, {"error": error.name, **fields}

    def _join_fields(self, response: JoinGroupResponse) -> Words:
        return {
            "gen": str(response.generation_id),
            "leader": self._label(response.leader),
            "id": self._label(response.member_id),
            "members": self._labels(member.member_id for member in response.members),
            "protocol": response.protocol_name or "-",
            "type": response.protocol_type or "-",
            "skip": str(response.skip_assignment).lower(),
        }

    def _record(self, record: LogRecord) -> tuple[str, Words]:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            assert isinstance(value, OffsetCommitValue)
            return "offset", {f"{key.topic}-{key.partition}": str(value.offset)}
        assert isinstance(value, GroupMetadataValue)
        return "group", {
            "gen": str(value.generation_id),
            "leader": self._label(value.leader),
            "members": self._labels(member.member_id for member in value.members),
            "protocol": value.protocol_name or "-",
            "type": value.protocol_type or "-",
            "clients": ",".join(sorted(member.client_id for member in value.members)),
            "session": ",".join(str(member.session_timeout_ms) for member in value.members),
            "rebalance": ",".join(str(member.rebalance_timeout_ms) for member in value.members),
        }

    def _group_record(self, options: Words) -> LogRecord:
        labels = options["members"].split(",")
        for label in labels:
            self.actor(label).member_id = f"id-of-{label}"
            self.actor(label).generation_id = int(options["gen"])
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation_id=int(options["gen"]),
            protocol_name="range",
            leader=self._id_of(labels[0]),
            members=tuple(
                GroupMetadataMember(
                    member_id=self._id_of(label),
                    group_instance_id=None,
                    client_id=label,
                    client_host="/127.0.0.1",
                    rebalance_timeout_ms=60_000,
                    session_timeout_ms=10_000,
                    subscription=b"range",
                    assignment=label.lower().encode(),
                )
                for label in labels
            ),
        )
        return LogRecord(GroupMetadataKey(self.group), value, 3)

    def _partition(self, options: Words) -> int | None:
        group = options.get("group")
        return None if group is None else self.harness.partition_of(group)

    def _id_of(self, name: str) -> str:
        return self.actors[name].member_id if name in self.actors else name

    def _label(self, member_id: str | None) -> str:
        if not member_id:
            return "-"
        for label, actor in self.actors.items():
            if actor.member_id == member_id:
                return label
        return member_id

    def _labels(self, member_ids: Iterable[str]) -> str:
        return ",".join(sorted(self._label(member_id) for member_id in member_ids)) or "-"


def _options(words: list[str]) -> Words:
    return {
        name: value for name, equals, value in (word.partition("=") for word in words) if equals
    }


def _fetched(response: OffsetFetchResponse) -> Iterator[tuple[str, str]]:
    for group in response.groups:
        prefix = "" if len(response.groups) == 1 else f"{group.group_id}/"
        if group.error_code is not ErrorCode.NONE:
            yield f"{prefix}error", group.error_code.name
        for topic in group.topics:
            for p in topic.partitions:
                name = f"{prefix}{topic.name}-{p.partition}"
                yield name, str(p.offset)
                yield f"{name}.epoch", str(p.leader_epoch)
                yield f"{name}.metadata", p.metadata or "-"


def _compare(line: str, wanted: list[list[str]], observed: list[tuple[str, Words]]) -> None:
    """Every wanted `who [error] [field=value ...]` fits one of the observed, and none is left."""
    left = list(observed)
    for who, *words in wanted:
        fields = _options(words)
        if words and "=" not in words[0]:
            fields["error"] = words[0]
        fitting = [
            entry
            for entry in left
            if entry[0] == who
            and all(entry[1].get(name) in value.split("/") for name, value in fields.items())
        ]
        assert fitting, f"{line}\nobserved: {observed}"
        left.remove(fitting[0])
    assert not left, f"{line}\nobserved: {observed}"


_COMMANDS: Final[dict[str, Callable[[Stage, list[str]], Step | None]]] = {
    "broker": Stage.broker,
    "stable": Stage.stable,
    "completing": Stage.completing,
    "join": Stage.join,
    "sync": Stage.sync,
    "heartbeat": Stage.heartbeat,
    "leave": Stage.leave,
    "commit": Stage.commit,
    "fetch": Stage.fetch,
    "wait": Stage.wait,
    "resign": Stage.resign,
    "elect": Stage.elect,
    "load": Stage.load,
    "hold": Stage.hold,
    "release": Stage.release,
    "fail": Stage.fail,
    "append": Stage.append,
    "force": Stage.force,
    "group": Stage.switch_group,
    "state": Stage.state,
    "log": Stage.log,
}
