"""A random program: the commands of one world, drawn one after the other.

The next command may build on the answers of the last ones, which the caller passes to `learn`. One
seed gives one program, as long as the answers are the same.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.differ import (
    admin_requests,
    broker_events,
    membership,
    offset_requests,
)
from coordinator_sim_conformance.differ.memory import Memory
from coordinator_sim_conformance.differ.references import Reference

Json = dict[str, Any]
Call = tuple[str, int, Json]

_REQUESTS: Final[dict[str, tuple[float, Callable[[Memory], Call]]]] = {
    "JoinGroup": (0.32, membership.join),
    "SyncGroup": (0.22, membership.sync),
    "Heartbeat": (0.10, membership.heartbeat),
    "LeaveGroup": (0.06, membership.leave),
    "OffsetCommit": (0.09, offset_requests.commit),
    "OffsetFetch": (0.06, offset_requests.fetch),
    "TxnOffsetCommit": (0.04, offset_requests.commit_in_transaction),
    "OffsetDelete": (0.02, offset_requests.delete),
    "DescribeGroups": (0.05, admin_requests.describe),
    "ListGroups": (0.02, admin_requests.list_groups),
    "DeleteGroups": (0.02, admin_requests.delete_groups),
}
"""Weight of each request, and its function."""

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

LEFT_OUT: Final = (
    *_REQUESTS,
    *_EVENTS,
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
    """

    __slots__ = ("_asked", "_calls", "_events", "_is_rough", "_left_out", "_memory", "seed")

    def __init__(self, reference: Reference, seed: int, without: Iterable[str] = ()) -> None:
        self.seed = seed
        not_offered = _REQUESTS.keys() - reference.versions.keys()
        left_out = self._left_out = {*without, *reference.lacks, *not_offered}
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
        calls = {name: entry for name, entry in _REQUESTS.items() if name not in left_out}
        self._calls = (
            [draw for _, draw in calls.values()],
            [share for share, _ in calls.values()],
        )
        events = {name: entry for name, entry in _EVENTS.items() if name not in left_out}
        self._events = (
            [draw for _, draw in events.values()],
            [share for share, _ in events.values()],
        )
        memory.start(memory.pick(_GROUP_NAMES), memory.pick((1, 2, 3, 3, 5)))

    def opening(self) -> list[Json]:
        """Return the commands that create the world: `init` and the topics."""
        memory = self._memory
        settings = memory.reference.settings
        config = self._drawn_settings() if settings is None else settings
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
                call = _REQUESTS[planned][1](memory)
                memory.focus = None
                return call
            memory.focus = None
        draws, shares = self._calls
        return memory.random.choices(draws, shares)[0](memory)

    def learn(self, answer: Json) -> None:
        """Learn from the answer to the last command, also about earlier requests."""
        self._memory.learn_records(answer.get("records", ()))
        for reply in answer.get("replies", ()):
            asked = self._asked.pop(reply.get("id", -1), None)
            if asked is not None and "data" in reply:
                self._memory.learn(*asked, reply["data"])
