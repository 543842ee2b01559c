"""A random program: the commands of one world, drawn one after the other.

The next command may build on the answers of the last ones, which the caller passes to `learn`. One
seed gives one program, as long as the answers are the same.

Draws requests of administrators: DescribeGroups, ListGroups, DeleteGroups.

Draws requests of classic members where groups change their type.

Subscriptions and assignments are those of consumers, with slips; members report what their
SyncGroups gave them. Ids of consumer members appear in classic requests, and the other way round.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim_conformance.differ import (
    broker_events,
    consumer_requests,
    membership,
    offset_requests,
    share_requests,
    streams_records,
    streams_requests,
)
from coordinator_sim_conformance.differ.memory import INSTANCES, Memory
from coordinator_sim_conformance.differ.references import Reference
from coordinator_sim_conformance.differ.share_state_programs import (
    SHARE_STATE,
    ShareStateProgram,
)

Json = dict[str, Any]
Call = tuple[str, int, Json]

_SUBSCRIPTIONS: Final = (
    *(("t",),) * 5,
    *(("t", "u"),) * 4,
    ("u",),
    ("u", "v"),
    ("nope",),
    ("t", "nope"),
    (),
)
_BLOBS: Final = ("", "00", "ffff00000000ffffffff", "0000", "00000000000100", "0001", "0003000000")
"""Bytes that are no subscription, and no assignment."""
_TURN: Final = 40
"""Commands of one turn of a program."""
_PARTITION_COUNTS: Final = {"t": 4, "u": 6, "v": 6}


def join(memory: Memory) -> Call:
    """Draw a JoinGroup of a consumer."""
    api, version, data = membership.join(memory)
    group_id = data["groupId"]
    if memory.chance(0.04):
        data["memberId"] = memory.pick((*memory.consumers.of(group_id), "m1"))
    if version >= 5 and data["memberId"] == "" and memory.consumers.has_static:
        data["groupInstanceId"] = memory.pick((None, *INSTANCES))
    if data.get("rebalanceTimeoutMs") == 0:
        # A Kafka that waits 0 ms loops for ever over static members.
        data["rebalanceTimeoutMs"] = 1
    subscription = _subscription(memory, data["memberId"])
    blob = encode_subscription(subscription, memory.pick((0, 1, 1, 2, 3)))
    # QUIRK: a name that is cut short stops a classic group of Kafka's for good, so none is.
    least = len(encode_subscription(subscription, 0))
    for protocol in data["protocols"]:
        sent = blob if memory.chance(0.98) else _broken(memory, blob, least)
        protocol["metadata"] = b64encode(sent).decode()
    return api, version, data


def sync(memory: Memory) -> Call:
    """Draw a SyncGroup; a leader's brings assignments of consumers."""
    api, version, data = membership.sync(memory)
    entries = data["assignments"]
    places = [
        TopicPartition(topic, index)
        for topic, count in _PARTITION_COUNTS.items()
        for index in range(count)
        if topic == "t" or memory.chance(0.5)
    ]
    memory.random.shuffle(places)
    is_broken = memory.chance(0.04)
    for number, entry in enumerate(entries):
        own = tuple(places[number :: len(entries)])
        if memory.chance(0.03):
            own = (*own, TopicPartition("nope", 0), *places[:1])
        user_data = b"own" if memory.chance(0.01) else None
        blob = encode_assignment(
            ConsumerAssignment(partitions=own, user_data=user_data), memory.pick((0, 1, 2, 3))
        )
        sent = _broken(memory, blob, 0) if is_broken else blob
        entry["assignment"] = b64encode(sent).decode()
    return api, version, data


def heartbeat(memory: Memory) -> Call:
    """Draw a ConsumerGroupHeartbeat, sometimes of a member that was a classic one.

    In every other turn of a program consumer members mostly leave, and classic ones come instead.
    """
    if memory.number // _TURN % 2 and memory.chance(0.6):
        return _leave(memory) or join(memory)
    api, version, data = consumer_requests.heartbeat(memory)
    group = memory.groups.get(data["groupId"])
    if group is not None and group.members and memory.chance(0.08):
        data["memberId"] = memory.pick(list(group.members))
        if memory.chance(0.4):
            data["memberEpoch"] = group.members[data["memberId"]]
    return api, version, data


def _leave(memory: Memory) -> Call | None:
    """Draw a heartbeat by which a consumer member leaves; None if none is known."""
    group_id = memory.group_id()
    members = memory.consumers.of(group_id)
    if not members:
        return None
    member_id = memory.pick(list(members))
    data = consumer_requests.fields(group_id, member_id, memory.pick((-1, -1, -1, -2)))
    data["instanceId"] = members[member_id].instance
    return "ConsumerGroupHeartbeat", 1, data


def learn(memory: Memory, api: str, request: Json, data: Json) -> None:
    """Learn from a SyncGroup what a classic member was given."""
    if api != "SyncGroup" or data.get("errorCode") != 0:
        return
    try:
        given = decode_assignment(b64decode(data["assignment"]))
    except WireFormatError:
        return
    memory.consumers.classic_owned[request["memberId"]] = given.partitions


def _subscription(memory: Memory, member_id: str) -> Subscription:
    """The subscription of a member, which owns what it was given, some of that, or nothing."""
    owned = memory.consumers.classic_owned.get(member_id, ())
    kind = memory.random.random()
    if kind < 0.4:
        owned = ()
    elif kind < 0.6:
        owned = tuple(place for place in owned if memory.chance(0.5))
    return Subscription(
        topics=memory.pick(_SUBSCRIPTIONS),
        owned_partitions=owned,
        generation_id=memory.pick((-1, 1)),
        rack_id=memory.pick((None, None, "", "r1")),
    )


def _broken(memory: Memory, blob: bytes, least: int) -> bytes:
    """Bytes that cannot be read, or a blob that is cut short behind `least` bytes."""
    if memory.chance(0.5) or least >= len(blob):
        return bytes.fromhex(memory.pick(_BLOBS))
    return blob[: memory.random.randrange(least, len(blob))]


_STATES: Final = (
    "Stable",
    "stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "AwaitingSync",
    "Dead",
    "Assigning",
    "no such state",
)
_TYPES: Final = ("classic", "Classic", "consumer", "share", "no such type")


def describe(memory: Memory) -> Call:
    """Draw a DescribeGroups, sometimes with a repeated name."""
    version = memory.version("DescribeGroups")
    names = _names(memory, (1, 1, 2, 4))
    data: Json = {"groups": names}
    if version >= 3:
        data["includeAuthorizedOperations"] = False
    return "DescribeGroups", version, data


def _names(memory: Memory, counts: Sequence[int]) -> list[str]:
    """Draw as many names of groups as one of the counts says."""
    drawn = memory.random.choices((*memory.fetchable, ""), k=memory.pick(counts))
    return [memory.own_group(name, memory.fetchable[0]) for name in drawn]


def list_groups(memory: Memory) -> Call:
    """Draw a ListGroups with filters of states and types, where the version has them."""
    version = memory.version("ListGroups")
    data: Json = {}
    if version >= 4:
        data["statesFilter"] = memory.random.choices(_STATES, k=memory.pick((0, 0, 1, 2)))
    if version >= 5:
        data["typesFilter"] = memory.random.choices(_TYPES, k=memory.pick((0, 0, 1, 2)))
    return "ListGroups", version, data


def delete_groups(memory: Memory) -> Call:
    """Draw a DeleteGroups, sometimes with a repeated name."""
    names = _names(memory, (1, 1, 2, 3))
    return "DeleteGroups", memory.version("DeleteGroups"), {"groupsNames": names}


_REQUESTS: Final[dict[str, tuple[float, Callable[[Memory], Call]]]] = {
    "JoinGroup": (0.32, membership.join),
    "SyncGroup": (0.22, membership.sync),
    "Heartbeat": (0.10, membership.heartbeat),
    "LeaveGroup": (0.06, membership.leave),
    "OffsetCommit": (0.09, offset_requests.commit),
    "OffsetFetch": (0.06, offset_requests.fetch),
    "TxnOffsetCommit": (0.04, offset_requests.commit_in_transaction),
    "OffsetDelete": (0.02, offset_requests.delete),
    "DescribeGroups": (0.05, describe),
    "ListGroups": (0.02, list_groups),
    "DeleteGroups": (0.02, delete_groups),
}
"""Weight of each request, and its function."""

_CONSUMER_REQUESTS: Final[dict[str, tuple[float, Callable[[Memory], Call]]]] = {
    "ConsumerGroupHeartbeat": (0.62, consumer_requests.heartbeat),
    "ConsumerGroupDescribe": (0.06, consumer_requests.describe),
    "OffsetCommit": (0.09, consumer_requests.commit),
    "OffsetFetch": (0.05, consumer_requests.fetch),
    "TxnOffsetCommit": (0.02, offset_requests.commit_in_transaction),
    "OffsetDelete": (0.02, offset_requests.delete),
    "DescribeGroups": (0.02, describe),
    "ListGroups": (0.02, list_groups),
    "DeleteGroups": (0.02, delete_groups),
    "JoinGroup": (0.03, membership.join),
    "SyncGroup": (0.01, membership.sync),
    "Heartbeat": (0.02, membership.heartbeat),
    "LeaveGroup": (0.02, membership.leave),
}
"""The same in worlds of consumer groups, where a classic one is now and then."""

_MIGRATION_REQUESTS: Final[dict[str, tuple[float, Callable[[Memory], Call]]]] = {
    **_CONSUMER_REQUESTS,
    "ConsumerGroupHeartbeat": (0.34, heartbeat),
    "JoinGroup": (0.19, join),
    "SyncGroup": (0.10, sync),
    "Heartbeat": (0.08, membership.heartbeat),
    "LeaveGroup": (0.05, membership.leave),
}
"""The same in worlds whose groups change their type, in turns: more consumer members come, then
more classic ones."""
_SHARE_REQUESTS: Final[dict[str, tuple[float, Callable[[Memory], Call]]]] = {
    "ShareGroupHeartbeat": (0.58, share_requests.heartbeat),
    "ShareGroupDescribe": (0.06, share_requests.describe),
    "AlterShareGroupOffsets": (0.05, share_requests.alter_offsets),
    "DeleteShareGroupOffsets": (0.05, share_requests.delete_offsets),
    "ConsumerGroupHeartbeat": (0.03, consumer_requests.heartbeat),
    "ConsumerGroupDescribe": (0.01, consumer_requests.describe),
    "OffsetCommit": (0.03, consumer_requests.commit),
    "OffsetFetch": (0.02, consumer_requests.fetch),
    "TxnOffsetCommit": (0.01, offset_requests.commit_in_transaction),
    "OffsetDelete": (0.01, offset_requests.delete),
    "DescribeGroups": (0.02, describe),
    "ListGroups": (0.02, list_groups),
    "DeleteGroups": (0.05, delete_groups),
    "JoinGroup": (0.02, membership.join),
    "SyncGroup": (0.01, membership.sync),
    "Heartbeat": (0.01, membership.heartbeat),
    "LeaveGroup": (0.02, membership.leave),
}
"""The same in worlds of share groups, where one of another type is now and then."""
_STREAMS_REQUESTS: Final[dict[str, tuple[float, Callable[[Memory], Call]]]] = {
    "StreamsGroupHeartbeat": (0.66, streams_requests.heartbeat),
    "StreamsGroupDescribe": (0.06, streams_requests.describe),
    "OffsetCommit": (0.07, streams_requests.commit),
    "OffsetFetch": (0.04, streams_requests.fetch),
    "TxnOffsetCommit": (0.02, offset_requests.commit_in_transaction),
    "OffsetDelete": (0.02, offset_requests.delete),
    "DescribeGroups": (0.01, describe),
    "ListGroups": (0.02, streams_requests.list_groups),
    "DeleteGroups": (0.02, delete_groups),
    "JoinGroup": (0.02, membership.join),
    "SyncGroup": (0.01, membership.sync),
    "Heartbeat": (0.01, membership.heartbeat),
    "LeaveGroup": (0.01, membership.leave),
    "ConsumerGroupHeartbeat": (0.02, consumer_requests.heartbeat),
    "ConsumerGroupDescribe": (0.01, consumer_requests.describe),
}
"""The same in worlds of streams groups, where others are now and then."""

WORLDS: Final = {
    "classic": _REQUESTS,
    "consumer": _CONSUMER_REQUESTS,
    "migration": _MIGRATION_REQUESTS,
    "share": _SHARE_REQUESTS,
    "streams": _STREAMS_REQUESTS,
}
"""Requests by the type of the groups that they are mostly about."""

_EVENTS: Final[dict[str, tuple[float, Callable[[Memory], Json | None]]]] = {
    "fail": (0.25, broker_events.fail_appends),
    "verify": (0.05, broker_events.fail_verification),
    "hold": (0.12, broker_events.hold),
    "commit": (0.22, broker_events.commit_log),
    "elect": (0.26, broker_events.change_leadership),
    "append": (0.05, broker_events.append_foreign),
    "topics": (0.05, broker_events.change_topics),
}
"""Events of a rough world's broker."""

_SHARE_EVENTS: Final = {**_EVENTS, "persister": (0.30, share_requests.persister)}
"""The same in worlds of share groups."""

LEFT_OUT: Final = (
    *dict.fromkeys((*_REQUESTS, *_CONSUMER_REQUESTS, *_SHARE_REQUESTS, *_STREAMS_REQUESTS)),
    *_SHARE_EVENTS,
    "static",
    "regex",
    "endpoints",
    "endTxn",
    "retention",
    "topic-ids",
    "no-protocols",
    "no-group",
)
"""Names that a program can be told to leave out."""

_GROUP_NAMES: Final = (
    ("g",),
    ("a", "b"),
    ("a", "b", "c", "d"),
    ("a", "größe", "日本", "😀"),
    ("same-1", "same-12", "x" * 300),
)
_ASSIGNORS: Final = ("uniform,range", "uniform,range", "range", "range,uniform")
_POLICIES: Final = (*("bidirectional",) * 5, "upgrade", "downgrade", "disabled")
_APPEND_SHARE: Final = 0.7
_NEVER_MS: Final = 2**50
_NAMING_TOPICS: Final = ("OffsetCommit", "OffsetFetch")
_LAST_WITH_NAMES: Final = 9
"""Last version of these two APIs that names topics by their names."""


class Program:
    """The commands of one world.

    Args:
        reference: Reference whose API versions are used.
        seed: Seed of the program and of the world's member ids.
        without: Requests and events to leave out, by the names in `LEFT_OUT`.
        world: The type of its groups, by the names in `WORLDS`.
    """

    def __init__(
        self,
        reference: Reference,
        seed: int,
        without: Iterable[str] = (),
        world: str = "classic",
    ) -> None:
        self.seed = seed
        requests = WORLDS[world]
        not_offered = requests.keys() - reference.versions.keys()
        left_out = self._left_out = {*without, *reference.lacks, *not_offered}
        self._world = world
        self._requests = requests
        if world not in ("classic", "streams"):
            # Records of classic groups under the id of another group give the partition up.
            left_out.add("append")
        self._asked: dict[int, tuple[str, Json]] = {}
        if "topic-ids" in left_out:
            capped = {
                api: (low, min(high, _LAST_WITH_NAMES) if api in _NAMING_TOPICS else high)
                for api, (low, high) in reference.versions.items()
            }
            reference = replace(reference, versions=capped)
        memory = self._memory = Memory(reference, seed)
        memory.owns_nameless_group = "no-group" not in left_out
        memory.always_has_protocols = "no-protocols" in left_out
        self._is_rough = memory.chance(0.6)
        memory.leaves_alone = self._is_rough and world != "classic" and "fail" not in left_out
        calls = {name: entry for name, entry in requests.items() if name not in left_out}
        self._calls = (
            [draw for _, draw in calls.values()],
            [share for share, _ in calls.values()],
        )
        drawn_events = _SHARE_EVENTS if world == "share" else _EVENTS
        events = {name: entry for name, entry in drawn_events.items() if name not in left_out}
        if world == "streams" and "append" in events:
            events["append"] = (_APPEND_SHARE, streams_records.append_roles)
        self._events = (
            [draw for _, draw in events.values()],
            [share for share, _ in events.values()],
        )
        names = _GROUP_NAMES[:2] if world == "migration" else _GROUP_NAMES
        memory.start(memory.pick(names), memory.pick((1, 2, 3, 3, 5)))
        if world in ("consumer", "migration"):
            memory.consumers.has_static = "static" not in left_out and memory.chance(0.6)
            memory.consumers.has_regex = "regex" not in left_out and memory.chance(0.4)
        if self._world == "streams":
            is_new = PROFILES[reference.profile].streams_has_static_members
            streams = memory.streams
            streams.has_static = is_new and "static" not in left_out and memory.chance(0.5)
            streams.has_offsets = is_new and memory.chance(0.5)
            streams.has_endpoints = "endpoints" not in left_out and memory.chance(0.5)
            streams.is_smooth = memory.chance(0.6)
            if streams.is_smooth:
                self._leave_others_out()

    def _leave_others_out(self) -> None:
        """Let no group of another type take the ids of streams groups."""
        draws, shares = self._calls
        others = (membership.join, consumer_requests.heartbeat, offset_requests.commit)
        kept = [pair for pair in zip(draws, shares, strict=True) if pair[0] not in others]
        self._calls = ([draw for draw, _ in kept], [share for _, share in kept])

    def opening(self) -> list[Json]:
        """Return the commands that create the world: `init` and the topics."""
        memory = self._memory
        settings = memory.reference.settings
        config = self._drawn_settings() if settings is None else settings
        if self._world != "classic":
            config |= self._drawn_consumer_settings()
        if self._world == "share":
            config |= self._drawn_share_settings()
        if self._world == "streams":
            config |= self._drawn_streams_settings()
        memory.longest_metadata = int(config["offset.metadata.max.bytes"])
        init: Json = {
            "op": "init",
            "seed": self.seed,
            "partitions": memory.partitions,
            "config": config,
        }
        topics = [
            broker_events.set_topic(memory, name, count)
            for name, count in (("t", 4), ("u", 6), ("v", 6))
        ]
        return [init, {"op": "topics", "set": [entry for made in topics for entry in made["set"]]}]

    def _drawn_settings(self) -> dict[str, str]:
        """Draw the broker settings of a world."""
        memory = self._memory
        pick = memory.pick
        config: dict[str, int] = {
            "group.initial.rebalance.delay.ms": pick((0, 100, 3_000)),
            "group.min.session.timeout.ms": 100,
            "group.max.size": pick((2, 3, 2**31 - 1, 2**31 - 1)),
            "offset.metadata.max.bytes": 8,
            "offsets.commit.timeout.ms": pick((5_000, 5_000, 1_000)),
            "offsets.retention.check.interval.ms": _NEVER_MS,
        }
        if memory.chance(0.5) and "retention" not in self._left_out:
            config["offsets.retention.check.interval.ms"] = pick((20_000, 60_000, 600_000))
            config["offsets.retention.minutes"] = pick((1, 2, 10))
        linger_ms = pick(memory.reference.lingers_ms)
        if linger_ms is not None:
            config["group.coordinator.append.linger.ms"] = linger_ms
        else:
            linger_ms = PROFILES[memory.reference.profile].append_linger_ms
        memory.is_lingering = linger_ms > 0
        return {name: str(value) for name, value in config.items()}

    def _drawn_consumer_settings(self) -> dict[str, str]:
        """Draw the broker settings of consumer groups."""
        pick = self._memory.pick
        session_ms = pick((5_000, 10_000, 45_000))
        return {
            "group.consumer.migration.policy": pick(_POLICIES),
            "group.consumer.min.session.timeout.ms": "5000",
            "group.consumer.session.timeout.ms": str(session_ms),
            "group.consumer.heartbeat.interval.ms": "5000" if session_ms > 5_000 else "1000",
            "group.consumer.min.heartbeat.interval.ms": "1000",
            "group.consumer.max.size": str(pick((2, 3, 2**31 - 1, 2**31 - 1))),
            "group.consumer.assignors": pick(_ASSIGNORS),
            "group.consumer.assignment.interval.ms": str(pick((0, 0, 1_000, 5_000))),
        }

    def _drawn_share_settings(self) -> dict[str, str]:
        """Draw the broker settings of share groups."""
        pick = self._memory.pick
        session_ms = pick((5_000, 10_000, 45_000))
        return {
            "group.share.min.session.timeout.ms": "5000",
            "group.share.session.timeout.ms": str(session_ms),
            "group.share.heartbeat.interval.ms": "5000" if session_ms > 5_000 else "1000",
            "group.share.min.heartbeat.interval.ms": "1000",
            "group.share.max.size": str(pick((2, 3, 200, 200))),
            "group.share.assignment.interval.ms": str(pick((0, 0, 1_000, 5_000))),
            "group.share.initialize.retry.interval.ms": str(pick((1_000, 30_000))),
        }

    def _drawn_streams_settings(self) -> dict[str, str]:
        """Draw the broker settings of streams groups."""
        memory = self._memory
        pick = memory.pick
        profile = PROFILES[memory.reference.profile]
        session_ms = pick((5_000, 45_000, 45_000))
        settings = {
            "group.streams.min.session.timeout.ms": "5000",
            "group.streams.session.timeout.ms": str(session_ms),
            "group.streams.heartbeat.interval.ms": "5000" if session_ms > 5_000 else "1000",
            "group.streams.min.heartbeat.interval.ms": "1000",
            "group.streams.max.size": str(pick((2, 3, *(2**31 - 1,) * 4))),
            "group.streams.num.standby.replicas": str(pick((0, 0, 1, 1, 2))),
            "group.streams.initial.rebalance.delay.ms": str(pick((0, 0, 0, 500, 3_000))),
        }
        if profile.streams_assignment_interval:
            settings["group.streams.assignment.interval.ms"] = str(pick((0, 0, 1_000, 5_000)))
        if profile.streams_takes_offsets:
            settings |= {
                "group.streams.num.warmup.replicas": str(pick((0, 2, 2))),
                "group.streams.task.offset.interval.ms": str(pick((15_000, 60_000))),
                "group.streams.acceptable.recovery.lag": str(pick((0, 10_000))),
                "group.streams.rack.aware.assignment.tags": pick(("", "", "zone", "zone,cluster")),
            }
        return settings

    def next(self, number: int) -> Json:
        """Return the next command; `number` becomes its id and is never used twice."""
        memory = self._memory
        memory.number = number
        command = self._draw()
        command["id"] = number
        return command

    def _draw(self) -> Json:
        memory = self._memory
        drawn = memory.random.random()
        if drawn < 0.15:
            return broker_events.advance(memory)
        if self._world == "streams":
            change = streams_requests.create_internal_topics(memory)
            change = change or streams_requests.remove_internal_topic(memory)
            if change is not None:
                return change
        if self._is_rough and drawn < (0.4 if memory.resigned else 0.2):
            events, weights = self._events
            event = memory.random.choices(events, weights)[0](memory) if events else None
            if event is not None:
                return event
        if drawn > 0.98 and "endTxn" not in self._left_out:
            return broker_events.end_transaction(memory)
        api, version, data = self._draw_call()
        self._asked[memory.number] = (api, data)
        client = memory.pick(("c1", "c1", "c2"))
        return {"op": "call", "api": api, "v": version, "data": data, "clientId": client}

    def _draw_call(self) -> Call:
        """Draw a request: of a plan's member, or of any."""
        memory = self._memory
        if memory.chance(0.6 if memory.is_orderly else 0.3):
            planned = memory.follow_plan()
            if planned is not None and planned not in self._left_out:
                call = self._planned(planned)(memory)
                memory.focus = None
                return call
            memory.focus = None
        draws, shares = self._calls
        return memory.random.choices(draws, shares)[0](memory)

    def _planned(self, api: str) -> Callable[[Memory], Call]:
        """Who draws the next request of a plan."""
        return (self._requests if self._world == "migration" else _REQUESTS)[api][1]

    def learn(self, answer: Json) -> None:
        """Learn from the answer to the last command, also about earlier requests."""
        self._memory.learn_records(answer.get("records", ()))
        for reply in answer.get("replies", ()):
            asked = self._asked.pop(reply.get("id", -1), None)
            if asked is not None and "data" in reply:
                if asked[0] == "StreamsGroupHeartbeat":
                    self._memory.streams.learn(asked[1], reply)
                if asked[0] == "ConsumerGroupHeartbeat":
                    self._memory.consumers.learn(asked[1], reply["data"])
                if asked[0] == "ShareGroupHeartbeat":
                    self._memory.shares.learn(asked[1], reply["data"])
                self._memory.learn(*asked, reply["data"])
                learn(self._memory, *asked, reply["data"])


def program_of(
    reference: Reference, seed: int, without: Iterable[str] = (), world: str = "classic"
) -> Program | ShareStateProgram:
    """The program of a world of groups, or of share partitions; see `Program`."""
    if world == SHARE_STATE:
        return ShareStateProgram(reference, seed, without)
    return Program(reference, seed, without, world)
