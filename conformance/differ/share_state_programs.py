"""Random programs for a share coordinator: the five APIs, time, log faults, elections, topics.

A program learns nothing from answers: its epochs and offsets are drawn from few, so that they meet.
"""

from collections.abc import Iterable
from random import Random
from typing import Any, Final

from coordinator_sim_conformance.differ.broker_events import FAILURES
from coordinator_sim_conformance.differ.references import Reference

Json = dict[str, Any]

SHARE_STATE: Final = "share-state"
"""The name of these worlds beside those of `programs.WORLDS`."""
_GROUPS: Final = (("g",), ("g", "größe"), ("g", "h", "a:b"))
_TOPICS: Final = {"t": 4, "u": 2}
_WAITS_MS: Final = (1, 5, 20, 100, 1_000, 1_000, 2_000, 5_000, 20_000, 60_000, 300_000, 600_000)
_PARTITION_COUNTS: Final = (1, 2, 3, 3, 13)
_APIS: Final = {
    "InitializeShareGroupState": (0.24, 0),
    "ReadShareGroupState": (0.20, 0),
    "WriteShareGroupState": (0.42, 1),
    "DeleteShareGroupState": (0.04, 0),
    "ReadShareGroupStateSummary": (0.10, 1),
}
"""Weight and newest version of each API."""


class ShareStateProgram:
    """The commands of one world.

    Args:
        reference: Whom the program is for.
        seed: Of the program.
        without: Events and APIs to leave out.
    """

    def __init__(self, reference: Reference, seed: int, without: Iterable[str] = ()) -> None:
        self.seed = seed
        self._random = Random(seed)  # noqa: S311 - draws programs, guards nothing
        self._reference = reference
        self._partitions = self._random.choice(_PARTITION_COUNTS)
        self._groups = self._random.choice(_GROUPS)
        self._epoch = 1
        self._is_held = False
        self._is_settled = True
        self._is_lingering = False
        self._is_over = False
        self._lives = dict.fromkeys(_TOPICS, 0)
        self._is_rough = self._chance(0.6)
        events = {
            "fail": (0.25, self._fail),
            "hold": (0.15, self._hold),
            "commit": (0.25, self._commit),
            "elect": (0.20, self._elect),
            "topics": (0.10, self._change_topics),
            "features": (0.05, self._features),
            "shutdown": (0.003, self._shutdown),
        }
        left_out = frozenset(without)
        self._events = {name: event for name, event in events.items() if name not in left_out}
        self._apis = {name: weight for name, (weight, _) in _APIS.items() if name not in left_out}

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def opening(self) -> list[Json]:
        """Return the commands that create the world."""
        pick = self._random.choice
        linger_ms = pick((-1, -1, -1, -1, 0, 5, 40))
        self._is_lingering = linger_ms > 0
        config = {
            "share.coordinator.snapshot.update.records.per.snapshot": pick((0, 1, 2, 5, 500)),
            "share.coordinator.write.timeout.ms": pick((1_000, 5_000, 5_000)),
            "share.coordinator.append.linger.ms": linger_ms,
            "share.coordinator.state.topic.prune.interval.ms": pick((2_000, 30_000, 300_000)),
            "share.coordinator.cold.partition.snapshot.interval.ms": pick((1_000, 20_000, 300_000)),
        }
        return [
            {
                "op": "init",
                "coordinator": "share",
                "seed": self.seed,
                "partitions": self._partitions,
                "config": {name: str(value) for name, value in config.items()},
            },
            {"op": "topics", "set": [self._topic(name) for name in _TOPICS]},
            {"op": "features", "share": pick((0, 1, 1, 1))},
            *(self._call("InitializeShareGroupState") for _ in range(6)),
        ]

    def _topic(self, name: str) -> Json:
        return {"name": name, "id": self._topic_id(name), "partitions": _TOPICS[name]}

    def _topic_id(self, name: str) -> str:
        """The text of the id of a topic's present life; it is another one in each."""
        return f"{name}{self._lives[name] % 10}".rjust(22, "A")[:21] + "A"

    def next(self, number: int) -> Json:
        """Return the next command; `number` becomes its id and is never used twice."""
        return {**self._draw(), "id": number}

    def learn(self, _answer: Json) -> None:
        """Nothing is learnt."""

    def _draw(self) -> Json:
        drawn = self._random.random()
        if drawn < 0.15:
            return {"op": "advance", "ms": self._random.choice(_WAITS_MS)}
        if self._is_rough and drawn < 0.3 and self._events and not self._is_over:
            draws = [draw for _, draw in self._events.values()]
            shares = [share for share, _ in self._events.values()]
            event = self._random.choices(draws, shares)[0]()
            if event is not None:
                return event
        (api,) = self._random.choices(list(self._apis), list(self._apis.values()))
        return self._call(api)

    # -- requests --------------------------------------------------------------------------

    def _call(self, api: str) -> Json:
        newest = _APIS[api][1]
        version = newest if self._chance(0.9) else 0
        group_id = "" if self._chance(0.02) else self._random.choice(self._groups)
        count = self._random.choice((1, 1, 1, 2, 0 if self._chance(0.1) else 1))
        topics = [
            {"topicId": self._asked_topic(), "partitions": self._partitions_of(api, version)}
            for _ in range(count)
        ]
        data = {"groupId": group_id, "topics": topics}
        return {"op": "call", "api": api, "v": version, "data": data}

    def _asked_topic(self) -> str:
        if self._chance(0.03):
            return "AAAAAAAAAAAAAAAAAAAAZA"
        return self._topic_id(self._random.choice(list(_TOPICS)))

    def _partitions_of(self, api: str, version: int) -> list[Json]:
        count = self._random.choice((1, 1, 1, 2, 3, 0 if self._chance(0.1) else 1))
        return [self._partition(api, version) for _ in range(count)]

    def _partition(self, api: str, version: int) -> Json:
        pick = self._random.choice
        index = pick((0, 0, 0, 1, 1, 2, 3, -1 if self._chance(0.2) else 0))
        asked: Json = {"partition": index}
        if api in ("InitializeShareGroupState", "WriteShareGroupState"):
            asked["stateEpoch"] = pick((1, 1, 1, 1, 1, 2, 2, 3, 0, -1))
            asked["startOffset"] = pick((-1, -1, 0, 5, 10, self._random.randrange(40)))
        if api in ("ReadShareGroupState", "ReadShareGroupStateSummary", "WriteShareGroupState"):
            asked["leaderEpoch"] = pick((1, 1, 1, 1, 2, 2, 3, 4, 0, -1))
        if api == "WriteShareGroupState":
            if version > 0:
                asked["deliveryCompleteCount"] = pick((-1, 0, 0, 3, 7))
            asked["stateBatches"] = [self._batch() for _ in range(pick((0, 1, 1, 2, 3, 6)))]
        return asked

    def _batch(self) -> Json:
        first = self._random.randrange(40)
        return {
            "firstOffset": first,
            "lastOffset": first + self._random.choice((0, 0, 1, 2, 4, 9)),
            "deliveryState": self._random.choice((0, 2, 4)),
            "deliveryCount": self._random.choice((1, 1, 1, 2, 3)),
        }

    # -- events ----------------------------------------------------------------------------

    def _fail(self) -> Json:
        if self._chance(0.2):
            return {"op": "fail", "deletions": 1}
        count = self._random.choice((1, 1, 2))
        return {"op": "fail", "append": self._random.choice(FAILURES), "count": count}

    def _hold(self) -> Json:
        self._is_held = not self._is_held
        self._is_settled = False
        return {"op": "hold", "hw": self._is_held}

    def _commit(self) -> Json:
        if self._chance(0.6):
            self._is_settled = not self._is_held
            return {"op": "commit"}
        return {"op": "commit", "partition": self._random.randrange(self._partitions)}

    def _elect(self) -> Json:
        self._epoch += 1
        where = {"partition": self._random.randrange(self._partitions)}
        kind = self._random.random()
        if kind < 0.7:
            if self._chance(0.5):
                where = {}
            epoch = self._epoch if self._chance(0.85) else self._random.choice((0, 1))
            return {"op": "elect", "epoch": epoch, **where}
        return {"op": "resign", **({"epoch": self._epoch} if kind < 0.85 else {}), **where}

    def _shutdown(self) -> Json:
        self._is_over = True
        return {"op": "shutdown"}

    def _features(self) -> Json:
        return {"op": "features", "share": self._random.choice((0, 1, 1))}

    def _change_topics(self) -> Json | None:
        """Delete or create a topic; None while a deletion would wait for the log."""
        name = self._random.choice(list(_TOPICS))
        if self._chance(0.5):
            return {"op": "topics", "set": [self._topic(name)]}
        if self._is_lingering or self._is_held or not self._is_settled:
            # A broker blocks until its tombstones are committed.
            return None
        self._lives[name] += 1
        return {"op": "topics", "remove": [name]}
