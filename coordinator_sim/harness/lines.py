"""The line protocol: one broker in virtual time, driven by JSON objects.

A command is an object with `op`; its answer holds the virtual time, the replies of every request
that completed, in order, and the records appended. Any language can drive the simulator this way,
and the same scripts drive Apache Kafka's own coordinators in `conformance/oracle`.

Ops: init, call, wire, encode, decode, advance, topics, startup, shutdown, elect, resign, append,
hold, commit, fail, endTxn, partitionFor, uuids, stats. `init` takes `started`: whether the
coordinator takes requests before `startup`. Our own beside the oracle's fields are `profile` and
`edge`: whether TxnOffsetCommit, too, passes the checks of KafkaApis, which most oracles lack;
`stepped`: a world in which nothing happens by itself, with ops of its own beside. A
call's `form` is the version of its JSON and of its answer's, where that is not `v`.

A command that cannot be run is answered with `error`; the next one is not affected. The command
line tool reads and writes the lines.

The ops of the line protocol that drive a world step by step; see `stepped`.

Ops: clock, fire, background, refuse, replay, expire, topicsDeleted, open, assignors, prepare,
timers, groupConfig.
They are for a world that `init` made with `stepped`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.streams_sticky import AssignedTasks
from coordinator_sim.broker.metadata.image import Topic
from coordinator_sim.coordinator.contract import CoordinatorConfig, DeletedTopic
from coordinator_sim.coordinator.properties import configured
from coordinator_sim.errors import UNREADABLE_JSON, CoordinatorSimError, InvariantViolation
from coordinator_sim.harness import line_fields as fields
from coordinator_sim.harness.harness import START_MS, Harness, Step
from coordinator_sim.harness.kafka_json import (
    frame_to_json,
    json_to_frame,
    read_records,
    read_request,
    write_records,
    write_response,
    write_topic,
)
from coordinator_sim.harness.kafka_json.persister_calls import write_calls
from coordinator_sim.harness.kafka_json.topic_ids import topic_id_of
from coordinator_sim.harness.line_fields import Json, LineError
from coordinator_sim.harness.stepped import Prepared, SteppedHarness, timer_name
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import versions_of
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile, profile_named
from coordinator_sim.log.format.offsets_records import encode_record
from coordinator_sim.messages.catalogue import SpokenMessage, name_of, newest_version
from coordinator_sim.messages.codec.frames import decode_request, encode_response
from coordinator_sim.messages.codec.json_form import base64_text
from coordinator_sim.messages.records import NO_PRODUCER_ID, EndTransactionMarker, LogBatch
from coordinator_sim.messages.requests import GroupRequest, Request, Response, group_api_named

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


OFFSETS_PARTITIONS: Final = 50
"""Partitions of `__consumer_offsets`, unless `init` says otherwise."""


class Asked(Struct, frozen=True):
    """An open request: the fields that its reply repeats, and its form.

    `version` is that of the forms of the request and of its reply.
    `correlation_id` is that of a frame, whose answer is a frame; None asks for JSON.
    """

    line_id: object
    api: str
    version: int
    request: GroupRequest | CompleteTransaction
    correlation_id: int | None = None


class Lines:
    """Answers commands, in a world that `init` creates anew.

    Args:
        profile: Profile of worlds whose `init` names none.
    """

    def __init__(self, profile: Profile = DEFAULT_PROFILE) -> None:
        self._profile = profile
        self._offered = versions_of(profile)
        self._harness: Harness | None = None
        self._asked: dict[int, Asked] = {}
        self._wants_bytes = False

    def answer_line(self, line: bytes) -> bytes:
        """Return the answer to one line, without a line end."""
        try:
            command = msgspec.json.decode(line)
        except UNREADABLE_JSON as error:
            return msgspec.json.encode(self._failure({}, f"not JSON: {error}"))
        if not isinstance(command, dict):
            return msgspec.json.encode(self._failure({}, "a command is a JSON object"))
        return msgspec.json.encode(self.answer(command))

    def answer(self, command: Json) -> Json:
        """Return the answer to one command."""
        answer: Json = {"id": command["id"]} if "id" in command else {}
        op = command.get("op")
        verb = _VERBS.get(op) if isinstance(op, str) else None
        if verb is None:
            return self._failure(answer, f"unknown op {op!r}: use one of {', '.join(_VERBS)}")
        try:
            step = verb(self, command, answer)
        except InvariantViolation:
            raise
        except CoordinatorSimError as error:
            return self._failure(answer, str(error))
        if self._harness is not None:
            answer["now"] = self._harness.now_ms
            if asked := self._harness.persister.calls:
                answer["persister"] = write_calls(asked)
                asked.clear()
        if step is not None:
            self._add_step(answer, step)
        return answer

    def _failure(self, answer: Json, message: str) -> Json:
        answer["error"] = message
        if self._harness is not None:
            answer["now"] = self._harness.now_ms
        return answer

    def _add_step(self, answer: Json, step: Step) -> None:
        if step.replies:
            answer["replies"] = replies = []
            for reply in step.replies:
                asked = self._asked.pop(reply.token)
                written: Json = {} if asked.line_id is None else {"id": asked.line_id}
                written["at"] = reply.at_ms
                written["api"] = asked.api
                written |= _said(asked, reply.response)
                if reply.internal_topics:
                    written["internalTopics"] = [write_topic(t) for t in reply.internal_topics]
                replies.append(written)
        if step.batches:
            answer["records"] = [
                record for batch in step.batches for record in self._records(batch)
            ]

    def _records(self, batch: LogBatch) -> list[Json]:
        written = write_records(batch)
        if self._wants_bytes:
            for record, entry in zip(batch.records, written, strict=False):
                key, value = encode_record(record)
                entry["keyBytes"] = base64_text(key)
                entry["valueBytes"] = None if value is None else base64_text(value)
        return written

    @property
    def harness(self) -> Harness:
        """The world of the last `init`, for inspection.

        Raises:
            LineError: there is no world yet.
        """
        return self._world

    @property
    def _world(self) -> Harness:
        if self._harness is None:
            raise LineError("no world yet: begin with the op init")
        return self._harness

    def _newest(self, api: str) -> int:
        """Return the version of a command that names none: the newest that the profile offers."""
        key = group_api_named(api)
        offered = self._offered.get(key)
        return newest_version(key) if offered is None else offered[1]

    # -- verbs -----------------------------------------------------------------------------

    def _init(self, command: Json, _answer: Json) -> None:
        profile = self._profile
        if "profile" in command:
            profile = profile_named(fields.text(command, "profile"))
        profile = _switched(profile, fields.object_of(command, "switches"))
        self._offered = versions_of(profile)
        partitions = fields.number(command, "partitions", OFFSETS_PARTITIONS)
        trace = fields.flag(command, "trace", default=False)
        base = CoordinatorConfig(
            offsets_topic_num_partitions=partitions,
            trace=trace,
            idle_timers=True,
            offsets_retention_ms=profile.default_retention_ms,
            group_max_session_timeout_ms=profile.default_max_session_timeout_ms,
        )
        properties = fields.object_of(command, "config")
        world = SteppedHarness if fields.flag(command, "stepped", default=False) else Harness
        self._harness = world(
            configured(base, {name: str(value) for name, value in properties.items()}),
            profile,
            seed=fields.number(command, "seed", 0),
            start_ms=fields.number(command, "startMs", START_MS),
            elect=fields.flag(command, "elect", default=True),
            started=fields.flag(command, "started", default=True),
        )
        self._harness.hears_own_last = profile.own_answer_last
        self._harness.topics.is_open = False
        self._harness.checks_at_edge = fields.flag(command, "edge", default=False)
        self._asked = {}
        self._wants_bytes = fields.flag(command, "bytes", default=False)

    def _call(self, command: Json, _answer: Json) -> Step:
        world = self._world
        api = fields.text(command, "api")
        version = fields.number(command, "v", self._newest(api))
        form = fields.number(command, "form", version)
        request = _request(api, form, fields.object_of(command, "data"))
        self._asked[world.next_token] = Asked(command.get("id"), api, form, request)
        return world.call(
            request,
            api_version=version,
            client_id=fields.text(command, "clientId", "client"),
            client_host=fields.text(
                command, "clientHost", "/" + fields.text(command, "host", "127.0.0.1")
            ),
        )

    def _wire(self, command: Json, _answer: Json) -> Step:
        world = self._world
        header, decoded = decode_request(fields.frame(command))
        api = name_of(ApiKey(header.api_key))
        request = _of_group(api, decoded)
        version = header.api_version
        self._asked[world.next_token] = Asked(
            command.get("id"), api, version, request, header.correlation_id
        )
        return world.call(
            request,
            api_version=version,
            client_id=header.client_id or "",
            client_host="/" + fields.text(command, "host", "127.0.0.1"),
        )

    def _encode(self, command: Json, answer: Json) -> None:
        api = fields.text(command, "api")
        frame = json_to_frame(
            api,
            fields.number(command, "v", self._newest(api)),
            fields.object_of(command, "data"),
            client_id=fields.text(command, "clientId", "client"),
            correlation_id=fields.number(command, "correlation", 0),
        )
        answer["frame"] = base64_text(frame)

    def _decode(self, command: Json, answer: Json) -> None:
        api = fields.text(command, "api")
        answer["data"] = frame_to_json(
            api,
            fields.number(command, "v", self._newest(api)),
            fields.frame(command),
            correlation_id=fields.number(command, "correlation", 0),
        )

    def _advance(self, command: Json, _answer: Json) -> Step:
        wait_ms = fields.number(command, "ms")
        if wait_ms < 0:
            raise LineError(f"ms: must not be negative, not {wait_ms}")
        return self._world.advance(wait_ms)

    def _topics(self, command: Json, _answer: Json) -> Step:
        world = self._world
        changed: dict[str, Topic] = {}
        for topic in fields.objects(command, "set"):
            name = fields.text(topic, "name")
            known = changed.get(name) or world.topics.get(name)
            count = fields.number(topic, "partitions", 1)
            racks = _racks(topic)
            if known is None:
                changed[name] = Topic(topic_id_of(topic, name), count, racks)
            elif count > known.partition_count or racks != known.racks:
                changed[name] = Topic(known.topic_id, max(count, known.partition_count), racks)
        version = fields.number(command, "version") if "version" in command else None
        return world.change_topics(changed, fields.texts(command, "remove"), version)

    def _startup(self, _command: Json, _answer: Json) -> Step:
        return self._world.startup()

    def _shutdown(self, _command: Json, _answer: Json) -> Step:
        return self._world.shutdown()

    def _elect(self, command: Json, _answer: Json) -> Step:
        return self._world.elect(self._partition(command), fields.number(command, "epoch", 1))

    def _resign(self, command: Json, _answer: Json) -> Step:
        epoch = fields.number(command, "epoch") if "epoch" in command else None
        return self._world.resign(self._partition(command), epoch)

    def _append(self, command: Json, _answer: Json) -> Step:
        partition = self._partition(command)
        if partition is None:
            raise LineError("append: name a partition or a group")
        records = read_records(fields.objects(command, "records"))
        timestamp_ms = fields.number(command, "timestamp") if "timestamp" in command else None
        return self._world.append(partition, records, timestamp_ms)

    def _hold(self, command: Json, _answer: Json) -> None:
        if "hw" in command:
            self._world.hold(high_watermark=fields.flag(command, "hw", default=False))

    def _commit(self, command: Json, _answer: Json) -> Step:
        offset = fields.number(command, "offset") if "offset" in command else None
        return self._world.commit(self._partition(command), offset)

    def _fail(self, command: Json, _answer: Json) -> None:
        if "append" in command:
            error = fields.error_code(command, "append")
            self._world.fail_appends(error, fields.number(command, "count", 1))
        if "verify" in command:
            found = command["verify"]
            verdict = ErrorCode.NONE if found is None else fields.error_code(command, "verify")
            self._world.fail_verification(verdict)

    def _persister(self, command: Json, _answer: Json) -> Step | None:
        world = self._world
        if "hold" in command:
            world.persister.holds = fields.flag(command, "hold", default=False)
        if "answer" not in command:
            return None
        error = fields.error_code(command, "answer")
        thrown = fields.flag(command, "throws", default=False)
        return world.answer_persister(error, fields.number(command, "count", 1), thrown=thrown)

    def _end_transaction(self, command: Json, _answer: Json) -> Step:
        world = self._world
        request = CompleteTransaction(
            partition=world.partition_of(fields.text(command, "group")),
            producer_id=fields.number(command, "producerId"),
            producer_epoch=fields.number(command, "producerEpoch", 0),
            committed=fields.flag(command, "commit", default=False),
            coordinator_epoch=fields.number(command, "coordinatorEpoch", 0),
        )
        self._asked[world.next_token] = Asked(command.get("id"), "EndTxnMarker", 0, request)
        return world.complete_transaction(request)

    def _partition_for(self, command: Json, answer: Json) -> None:
        answer["partition"] = self._world.partition_of(fields.text(command, "group"))

    def _uuids(self, command: Json, _answer: Json) -> None:
        for text in fields.items(command, "next"):
            try:
                self._world.ids.script(str(UUID(text)))
            except (ValueError, AttributeError):
                raise LineError(f"next: {text!r} is no UUID") from None

    def _stats(self, _command: Json, answer: Json) -> None:
        answer["timers"] = len(self._world.timers())

    def _partition(self, command: Json) -> int | None:
        """Return the offsets partition that a command names, or None for all of them."""
        if "group" in command:
            return self._world.partition_of(fields.text(command, "group"))
        if "partition" not in command:
            return None
        index = fields.number(command, "partition")
        count = self._world.config.offsets_topic_num_partitions
        if not 0 <= index < count:
            raise LineError(f"partition {index}: must be from 0 to {count - 1}")
        return index


def _stepped(verb: str) -> Callable[[Lines, Json, Json], Step | None]:
    def run(lines: Lines, command: Json, answer: Json) -> Step | None:
        world = lines.harness
        if not isinstance(world, SteppedHarness):
            raise LineError(f"{verb}: is for a world that `init` made with stepped: true")
        return STEPPED_VERBS[verb](world, command, answer)

    return run


_VERBS: Final[dict[str, Callable[[Lines, Json, Json], Step | None]]] = {
    "init": Lines._init,  # noqa: SLF001 - the table of this class's own verbs
    "call": Lines._call,  # noqa: SLF001 - as above
    "wire": Lines._wire,  # noqa: SLF001 - as above
    "encode": Lines._encode,  # noqa: SLF001 - as above
    "decode": Lines._decode,  # noqa: SLF001 - as above
    "advance": Lines._advance,  # noqa: SLF001 - as above
    "topics": Lines._topics,  # noqa: SLF001 - as above
    "startup": Lines._startup,  # noqa: SLF001 - as above
    "shutdown": Lines._shutdown,  # noqa: SLF001 - as above
    "elect": Lines._elect,  # noqa: SLF001 - as above
    "resign": Lines._resign,  # noqa: SLF001 - as above
    "append": Lines._append,  # noqa: SLF001 - as above
    "hold": Lines._hold,  # noqa: SLF001 - as above
    "commit": Lines._commit,  # noqa: SLF001 - as above
    "fail": Lines._fail,  # noqa: SLF001 - as above
    "persister": Lines._persister,  # noqa: SLF001 - as above
    "endTxn": Lines._end_transaction,  # noqa: SLF001 - as above
    "partitionFor": Lines._partition_for,  # noqa: SLF001 - as above
    "uuids": Lines._uuids,  # noqa: SLF001 - as above
    "stats": Lines._stats,  # noqa: SLF001 - as above
    **{verb: _stepped(verb) for verb in STEPPED_VERBS},
}


def _said(asked: Asked, response: Response) -> Json:
    """Return a reply's `v` with `data` or `frame`, as in the request, or a marker's result."""
    request = asked.request
    if isinstance(request, CompleteTransaction):
        return {"error": _error_text(response)}
    if asked.correlation_id is None:
        return {"v": asked.version, "data": write_response(request, asked.version, response)}
    frame = encode_response(
        cast("SpokenMessage", response),
        asked.version,
        correlation_id=asked.correlation_id,
        request=request,
    )
    return {"v": asked.version, "frame": base64_text(frame)}


def _racks(topic: Json) -> tuple[tuple[str, ...], ...]:
    """Return the racks of a topic's replicas, by partition."""
    by_partition = {str(index): each for index, each in enumerate(fields.items(topic, "racks"))}
    return tuple(tuple(fields.texts(by_partition, index)) for index in by_partition)


def _switched(profile: Profile, switches: Json) -> Profile:
    """Return a profile with switches set by hand, for a Kafka without a profile of its own."""
    for name, value in switches.items():
        known = getattr(profile, name, None)
        if type(known) is not type(value):
            raise LineError(f"switches: no profile has {name}={value!r}")
    return replace(profile, **switches)


def _error_text(response: Response) -> str | None:
    """Return the error of a transaction's end; None if it succeeded."""
    error = response.error_code if isinstance(response, TransactionCompleted) else ErrorCode.NONE
    return None if error is ErrorCode.NONE else error.name


def _request(api: str, version: int, data: Json) -> GroupRequest:
    """Return the request of a `call`."""
    return _of_group(api, read_request(api, version, data))


def _of_group(api: str, request: Request) -> GroupRequest:
    """Return the request if it goes to a group coordinator."""
    if not isinstance(request, GroupRequest):
        raise LineError(f"{api} is not asked of a group coordinator")
    return request
