"""Random sessions against Apache Kafka's own coordinator: replies, order, times and records."""

import base64
import json
import os
import random
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.harness.kafka_json import read_request, write_records, write_response
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import java_string_hash, partition_for
from coordinator_sim.protocol.requests import GroupRequest

Json = dict[str, Any]

SEEDS = int(os.environ.get("COORDINATOR_SIM_DIFFER_SEEDS", "20"))
STEPS = int(os.environ.get("COORDINATOR_SIM_DIFFER_STEPS", "300"))
FIRST_SEED = int(os.environ.get("COORDINATOR_SIM_DIFFER_FIRST", "1"))

SETTINGS = {
    "group_initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "group_min_session_timeout_ms": "group.min.session.timeout.ms",
    "group_max_size": "group.max.size",
    "offset_metadata_max_bytes": "offset.metadata.max.bytes",
    "offsets_commit_timeout_ms": "offsets.commit.timeout.ms",
}
PARTITIONS = 3
GROUPS = ("a", "b", "c", "d")
INSTANCES = ("i1", "i2", "i3")
WAITS = (1, 2, 10, 19, 20, 21, 100, 399, 400, 500, 1_000, 2_999, 3_000, 5_000, 8_000, 10_000)
LONG_WAITS = (12_000, 20_000, 30_000, 60_000, 300_000)
FAILURES = (
    "NOT_LEADER_OR_FOLLOWER",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "MESSAGE_TOO_LARGE",
    "KAFKA_STORAGE_ERROR",
    "REQUEST_TIMED_OUT",
)


class Oracle(Protocol):
    """What a session needs of the oracle."""

    def do(self, op: str, **fields: object) -> Json:
        """Run one command."""
        ...


def b64(text: str) -> str:
    """Text as base64."""
    return base64.b64encode(text.encode()).decode()


SUBSCRIPTION = base64.b64encode(bytes.fromhex("0000000000010001") + b"t" + b"\xff" * 4).decode()


class Session:
    """Draws commands, and learns from the answers which ids and generations are real."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - draws tests
        self.known: dict[str, dict[str, int]] = {group: {} for group in GROUPS}
        self.leaders: dict[str, str] = {}
        self.instances: dict[str, str] = {}
        self.resigned: list[int] = []
        self.is_held = False
        self.epoch = 1
        self.is_rough = self.random.random() < 0.6
        self.long_sessions = self.random.random() < 0.5
        self.is_orderly = self.random.random() < 0.6
        self.groups = GROUPS[: self.random.choice((1, 2, 4))]

    def config(self) -> Json:
        """Draw the broker's settings."""
        pick = self.random.choice
        return {
            "group_initial_rebalance_delay_ms": pick((0, 100, 3_000)),
            "group_min_session_timeout_ms": 100,
            "group_max_size": pick((2, 3, 2**31 - 1, 2**31 - 1)),
            "offset_metadata_max_bytes": 8,
            "offsets_commit_timeout_ms": pick((5_000, 5_000, 1_000)),
        }

    def next(self, number: int) -> Json:
        """Draw the next command."""
        drawn = self.random.random()
        if drawn < 0.15:
            waits = LONG_WAITS if self.random.random() < 0.15 else WAITS
            return {"op": "advance", "ms": self.random.choice(waits)}
        if drawn < (0.4 if self.resigned else 0.2) and self.is_rough:
            return self._rough()
        api, version, data = self._request(number)
        client = self.random.choice(("c1", "c1", "c2"))
        return {"op": "call", "api": api, "v": version, "data": data, "clientId": client}

    def learn(self, api: str, request: Json, data: Json) -> None:
        """Remember who is in, and forget who is told that it is not."""
        known = self.known.get(request.get("groupId", ""))
        if known is None:
            return
        if api == "JoinGroup" and data["errorCode"] in (0, 79):
            known[data["memberId"]] = max(data["generationId"], 0)
            if data["errorCode"] == 0:
                self.leaders[request["groupId"]] = data["leader"]
                if request.get("groupInstanceId") is not None:
                    self.instances[data["memberId"]] = request["groupInstanceId"]
        elif self.is_orderly and data.get("errorCode") in (25, 82):
            known.pop(request.get("memberId", ""), None)

    def _rough(self) -> Json:
        kind = self.random.random()
        partition = self.random.randrange(PARTITIONS)
        if kind < 0.35:
            error = self.random.choice(FAILURES)
            return {"op": "fail", "append": error, "count": self.random.choice((1, 1, 2))}
        if kind < 0.5:
            self.is_held = not self.is_held
            return {"op": "hold", "hw": self.is_held}
        if kind < 0.75:
            return self.random.choice(({"op": "commit"}, {"op": "commit", "partition": partition}))
        self.epoch += 1
        if self.resigned and kind < 0.9:
            return {"op": "elect", "partition": self.resigned.pop(), "epoch": self.epoch}
        if kind < 0.87:
            self.resigned.append(partition)
            return {"op": "resign", "partition": partition}
        if kind < 0.95:
            return {"op": "elect", "partition": partition, "epoch": self.epoch}
        return {"op": "elect", "epoch": self.epoch}

    def _request(self, number: int) -> tuple[str, int, Json]:
        rnd = self.random
        group = rnd.choice(self.groups)
        known = self._candidates(group)
        strangers = ("", "", "ghost") if not self.is_orderly or not known else ("",)
        member = rnd.choice([*known, *known, *known, *strangers])
        slips = [0] * (60 if self.is_orderly else 12)
        generation = self.known[group].get(member, 1) + rnd.choice([*slips, 1, -1])
        instance = rnd.choice([None] * 6 + list(INSTANCES))
        if self.is_orderly and member:
            instance = self.instances.get(member) if rnd.random() < 0.95 else instance
        kind = rnd.random()
        if kind < 0.36:
            return self._join(group, member, instance)
        if kind < 0.62:
            return self._sync(group, member, generation, instance)
        if kind < 0.74:
            version = rnd.choice((0, 1, 3, 4))
            data = {"groupId": group, "generationId": generation, "memberId": member}
            if version >= 3:
                data["groupInstanceId"] = rnd.choice((None, None, instance))
            return "Heartbeat", version, data
        if kind < 0.81:
            return self._leave(group, member, known)
        if kind < 0.92:
            return self._commit(group, member, generation, number)
        return self._fetch()

    def _candidates(self, group: str) -> list[str]:
        """Ids to use again; an orderly session keeps to those that may still be members."""
        known = self.known[group]
        recent = list(known)[-8:]
        if not self.is_orderly or not known:
            return recent
        latest = max(known.values())
        return [member for member in recent if known[member] in (0, latest)] or recent

    def _join(self, group: str, member: str, instance: str | None) -> tuple[str, int, Json]:
        rnd = self.random
        version = rnd.choice((0, 1, 3, 4, 5, 6, 7, 8, 9, 9, 9))
        names = rnd.choice(
            [["range"]] * 4
            + [["range", "roundrobin"], ["roundrobin", "range"], ["sticky", "range", "roundrobin"]]
            + [["cooperative-sticky", "range"], ["sticky"], []]
        )
        sessions = (10_000, 30_000, 10_000) if self.long_sessions else (6_000, 10_000, 3_000, 50)
        data: Json = {
            "groupId": rnd.choice([group] * 40 + [""]),
            "sessionTimeoutMs": rnd.choice(sessions),
            "memberId": member,
            "protocolType": rnd.choice(
                ["consumer"] * (80 if self.is_orderly else 14) + ["connect", ""]
            ),
            "protocols": [{"name": name, "metadata": SUBSCRIPTION} for name in names],
        }
        if version >= 1:
            data["rebalanceTimeoutMs"] = rnd.choice((5_000, 20_000, 60_000, 1, 10_000))
        if version >= 5:
            data["groupInstanceId"] = instance
        if version >= 8:
            data["reason"] = rnd.choice((None, "", "why"))
        return "JoinGroup", version, data

    def _sync(
        self, group: str, member: str, generation: int, instance: str | None
    ) -> tuple[str, int, Json]:
        rnd = self.random
        version = rnd.choice((0, 1, 3, 4, 5, 5))
        if rnd.random() < 0.3:
            member = self.leaders.get(group, member)
            generation = self.known[group].get(member, generation)
        assigns = rnd.random() < (0.9 if self.leaders.get(group) == member else 0.1)
        data: Json = {
            "groupId": group,
            "generationId": generation,
            "memberId": member,
            "assignments": [
                {"memberId": name, "assignment": b64(name)} for name in self.known[group]
            ]
            if assigns
            else [],
        }
        if version >= 3:
            data["groupInstanceId"] = rnd.choice((None, None, None, instance))
        if version >= 5:
            data["protocolType"] = rnd.choice(["consumer"] * 8 + ["connect"])
            data["protocolName"] = rnd.choice(["range"] * 8 + ["sticky", "roundrobin"])
        return "SyncGroup", version, data

    def _leave(self, group: str, member: str, known: list[str]) -> tuple[str, int, Json]:
        rnd = self.random
        version = rnd.choice((0, 2, 3, 4, 5, 5))
        if version < 3:
            return "LeaveGroup", version, {"groupId": group, "memberId": member}
        members = [member, *rnd.sample(known, k=min(len(known), rnd.choice((0, 0, 1, 2))))]
        entries: list[Json] = []
        for name in members:
            entry: Json = {"memberId": name, "groupInstanceId": None}
            if rnd.random() < 0.2:
                entry = {
                    "memberId": rnd.choice((name, "")),
                    "groupInstanceId": rnd.choice(INSTANCES),
                }
            if version >= 5:
                entry["reason"] = rnd.choice((None, "bye"))
            entries.append(entry)
        return "LeaveGroup", version, {"groupId": group, "members": entries}

    def _commit(
        self, group: str, member: str, generation: int, number: int
    ) -> tuple[str, int, Json]:
        rnd = self.random
        version = rnd.choice((2, 3, 5, 6, 7, 8, 9, 9))
        topics = []
        for name in rnd.sample(("t", "u", "v", "nope"), k=rnd.choice((1, 1, 2, 3))):
            partitions = []
            for index in rnd.sample(range(6), k=rnd.choice((1, 2, 3))):
                metadata = rnd.choice(("", "x", "x", None, "12345678", "123456789"))
                entry: Json = {
                    "partitionIndex": index,
                    "committedOffset": number,
                    "committedMetadata": metadata,
                }
                if version >= 6:
                    entry["committedLeaderEpoch"] = rnd.choice((-1, 3))
                partitions.append(entry)
            topics.append({"name": name, "partitions": partitions})
        data: Json = {
            "groupId": group,
            "generationIdOrMemberEpoch": rnd.choice((generation, generation, -1)),
            "memberId": rnd.choice((member, member, "")),
            "topics": topics,
        }
        if version >= 7:
            data["groupInstanceId"] = rnd.choice([None] * 6 + list(INSTANCES))
        if 2 <= version <= 4:
            data["retentionTimeMs"] = rnd.choice((-1, 10_000))
        return "OffsetCommit", version, data

    def _fetch(self) -> tuple[str, int, Json]:
        rnd = self.random
        version = rnd.choice((1, 2, 5, 7, 8, 9, 9))
        some = [
            {"name": "t", "partitionIndexes": [0, 1, 2]},
            {"name": "nope", "partitionIndexes": [0]},
        ]
        group = rnd.choice(GROUPS)
        data: Json = {
            "groupId": group,
            "topics": rnd.choice((some, None)) if version >= 2 else some,
        }
        if version >= 8:
            more = {"memberId": None, "memberEpoch": -1} if version >= 9 else {}
            names = rnd.sample(GROUPS, k=rnd.choice((1, 2)))
            data = {
                "groups": [
                    {"groupId": name, "topics": rnd.choice((some, None)), **more} for name in names
                ]
            }
        if version >= 7:
            data["requireStable"] = rnd.random() < 0.5
        return "OffsetFetch", version, data


class Ours:
    """The simulator behind the oracle's commands."""

    def __init__(self, seed: int, settings: Json) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=PARTITIONS, trace=seed % 2 == 0, **settings
        )
        self.harness = Harness(config, seed=seed)
        for name, count in (("t", 4), ("u", 6), ("v", 6)):
            low = (java_string_hash(name) & 0xFFFFFFFF) + 1
            self.harness.set_topic(name, count, (0x544F504943 << 64 | low).to_bytes(16, "big"))
        self._requests: dict[int, tuple[int, str, int, GroupRequest]] = {}

    def do(self, number: int, command: Json) -> Json:
        """Run one command and answer as the oracle does."""
        step = self._run(number, command)
        replies = []
        for reply in step.replies:
            asked, api, version, request = self._requests.pop(reply.token)
            data = write_response(request, version, reply.response)
            replies.append({"id": asked, "at": reply.at_ms, "api": api, "v": version, "data": data})
        return {
            "now": step.now_ms,
            "replies": replies,
            "records": [record for batch in step.batches for record in write_records(batch)],
        }

    def _run(self, number: int, command: Json) -> Step:
        harness = self.harness
        match command["op"]:
            case "call":
                request = read_request(command["api"], command["v"], command["data"])
                token = harness.next_token
                self._requests[token] = (number, command["api"], command["v"], request)
                return harness.call(
                    request, api_version=command["v"], client_id=command["clientId"]
                )
            case "advance":
                return harness.advance(command["ms"])
            case "fail":
                harness.fail_appends(ErrorCode[command["append"]], command["count"])
            case "hold":
                harness.hold(high_watermark=command["hw"])
            case "commit":
                return harness.commit(command.get("partition"))
            case "resign":
                return harness.resign(command["partition"])
            case "elect":
                return harness.elect(command.get("partition"), command["epoch"])
        return Step(now_ms=harness.now_ms)


def distinct(partitions: list[Json]) -> list[Json]:
    """Each partition once, in order."""
    return list(
        {
            entry["partitionIndex"]: entry
            for entry in sorted(partitions, key=lambda entry: entry["partitionIndex"])
        }.values()
    )


def comparable(answer: Json) -> Json:
    """The parts to compare.

    An OffsetFetch of everything is compared without order: after a failed append Kafka's timeline
    tables may list an offset twice, and out of place.
    """
    for reply in answer.get("replies", []):
        if reply["api"] == "OffsetFetch":
            data = reply["data"]
            for group in data.get("groups", [data]):
                group["topics"] = sorted(
                    (
                        {**topic, "partitions": distinct(topic["partitions"])}
                        for topic in group["topics"]
                    ),
                    key=lambda topic: topic["name"],
                )
    return {
        "now": answer["now"],
        "replies": answer.get("replies", []),
        "records": answer.get("records", []),
    }


def is_timed_out(data: Json) -> bool:
    """Whether this is the answer to a write that waited too long."""
    text = json.dumps(data)
    return '"errorCode": 15' in text or '"errorCode": 16' in text


def arrange(answer: Json, number: int, requests: dict[int, tuple[str, Json]]) -> None:
    """Order what happens at one instant on different partitions, where a broker has no order.

    The oracle hears of a request's own answer after it has heard of all the others. Writes that
    time out at one instant are taken by number: their order depends on how far Kafka's wheel lags
    behind the clock.
    """

    def place(reply: Json) -> tuple[int, bool, int, int]:
        group = requests[reply["id"]][1].get("groupId", "")
        is_own = reply["id"] == number
        timed_out = reply["id"] if is_timed_out(reply["data"]) else -1
        return reply["at"], is_own, partition_for(group, PARTITIONS), timed_out

    answer["replies"].sort(key=place)
    answer["records"].sort(key=lambda record: (record["ts"], record["partition"]))


def run_session(oracle: Oracle, seed: int, steps: int) -> Iterator[tuple[int, Json, Json, Json]]:
    """Yield each step's number, command, and the answers of Kafka and of the simulator."""
    session = Session(seed)
    settings = session.config()
    oracle.do(
        "init",
        seed=seed,
        partitions=PARTITIONS,
        config={
            **{SETTINGS[name]: str(value) for name, value in settings.items()},
            "offsets.retention.check.interval.ms": str(2**50),
        },
    )
    topics = [{"name": "t", "partitions": 4}, {"name": "u", "partitions": 6}]
    oracle.do("topics", set=[*topics, {"name": "v", "partitions": 6}])
    ours = Ours(seed, settings)
    requests: dict[int, tuple[str, Json]] = {}
    for number in range(steps):
        command = session.next(number)
        kafka = comparable(oracle.do(**command, id=number))
        # Kafka's wheel lags behind the clock while nothing expires, so that the oracle may hold a
        # timer of 0 ms back until time is advanced; a broker's timer thread does not.
        due = comparable(oracle.do("advance", ms=0))
        kafka["replies"] += due["replies"]
        kafka["records"] += due["records"]
        mine = comparable(ours.do(number, command))
        if command["op"] == "call":
            requests[number] = (command["api"], command["data"])
        for answer in (kafka, mine):
            arrange(answer, number, requests)
        for reply in kafka["replies"]:
            session.learn(*requests.pop(reply["id"]), reply["data"])
        yield number, command, kafka, mine


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_random_session_equals_kafka(oracle: Oracle, seed: int) -> None:
    """A random session gives the same replies, in order and time, and the same records."""
    for number, command, kafka, mine in run_session(oracle, seed, STEPS):
        assert mine == kafka, f"seed {seed}, step {number}: {command}"
