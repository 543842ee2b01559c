"""The story of share groups that is told in raw requests: what is asked, in its order.

Sessions, checks and their order, acquired records, acknowledgements, offsets, and what is left when
share groups are switched off. Nothing depends on the time of asking.
"""

from typing import Any, Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.share_answers import (
    BIG,
    GROUP,
    PAUSE_MS,
    RENEWS_SINCE,
    ShareAsking,
)

LOCK_MS: Final = 1_000
_GROUP_RESOURCE: Final = 32
_SAFE_DOWNGRADE: Final = 2
_ACCEPT, _RELEASE, _REJECT, _RENEW = 1, 2, 3, 4


class ShareStory(ShareAsking):
    """The story at one broker."""

    def play(self) -> list[str]:
        """Play it; each line has a label and an answer."""
        self._prepare()
        for part in (
            self._refusals,
            self._sessions,
            self._records,
            self._acknowledgements,
            self._piggybacked,
            self._bounds,
            self._leaving,
            self._locks,
            self._too_many_sessions,
            self._moved_log,
            self._deleted_topic,
            self._heartbeats,
            self._offsets,
            self._switched_off,
        ):
            part()
        self._main.close()
        return self._lines

    # -- the parts -------------------------------------------------------------------------

    def _refusals(self) -> None:
        """Requests that are refused as a whole."""
        acks = {0: [acked(0, 1, _ACCEPT)]}
        self._share("no group", group=None)
        for member in ("", None, "x" * 37, "x" * 36):
            self._share(f"member {member!r:.5}", member=member)  # type: ignore[arg-type]
        self._end("x" * 36)
        self._share("no session", epoch=1)
        self._share("no session to end", epoch=-1)
        self._share("acknowledging at first", acks=acks)
        self._share("negative epoch", epoch=-5)
        self._acknowledge("acknowledged without a group", acks, group=None)
        self._acknowledge("acknowledged by nobody", acks, member="")
        self._acknowledge("acknowledged without a session", acks)
        self._acknowledge("acknowledged at first", acks, epoch=0)
        self._acknowledge("acknowledged at last without a session", acks, epoch=-1)
        if self._version >= RENEWS_SINCE:
            self._share("renewing and fetching", epoch=1, renews=True)
            none: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "wait_ms": 0}
            self._share("renewing without a session", epoch=1, renews=True, **none)

    def _sessions(self) -> None:
        """A session grows, is told what changes, and forgets."""
        self._share("unknown topic", wanted={"nobodys": (0,)}, wait_ms=200)
        self._share("again", epoch=1, wanted={}, wait_ms=200)
        self._share("forgotten", epoch=2, wanted={}, forgotten={"nobodys": (0,)}, wait_ms=200)
        self._share("unknown partition", wanted={"orders": (0, 7)}, max_records=1)
        self._share("nothing new but the error", epoch=1, wanted={}, wait_ms=200)
        self._share("forget it", epoch=2, wanted={}, forgotten={"orders": (7,)}, wait_ms=200)
        self._share("nothing new", epoch=3, wanted={}, wait_ms=200)
        self._share("another partition", epoch=4, wanted={"orders": (1,)})
        self._share("wrong epoch", epoch=4, wanted={})
        self._share("right epoch", epoch=5, wanted={}, wait_ms=200)
        self._share("begun anew", epoch=0, wait_ms=200)
        self._share("ended", epoch=-1, wanted={})
        self._share("ended again", epoch=-1, wanted={})
        self._share("state that is not kept", group="stranger", wait_ms=200)
        self._end("m", "stranger")

    def _records(self) -> None:
        """Whole batches, or no record too many; each is with one member."""
        self._share("two of five", max_records=2)
        self._share("the rest for another", member="n")
        self._share("nothing for a third", member="o", wait_ms=200)
        self._end("o")
        self._end("n")
        self._share("what the other had", epoch=1, wanted={})
        self._end("m")
        self._share("each batch", batch_size=1)
        self._end("m")
        if self._version >= RENEWS_SINCE:
            self._share("not one too many", max_records=2, mode=1)
            self._share("two more", epoch=1, max_records=2, mode=1)
            self._share("another mode", epoch=2, max_records=2, mode=7)
            self._end("m")

    def _acknowledgements(self) -> None:
        """All kinds of acknowledgements, right and wrong, by ShareAcknowledge."""
        self._share("all five")
        for epoch, (label, batches) in enumerate(wrong_batches(), 1):
            self._acknowledge(label, {0: batches}, epoch=epoch)
        epoch = len(wrong_batches()) + 1
        self._acknowledge("of an unknown topic", {0: [acked(0, 0, 1)]}, epoch=epoch, topic="no")
        self._acknowledge("of an unknown partition", {9: [acked(0, 0, 1)]}, epoch=epoch + 1)
        self._acknowledge("of another partition", {1: [acked(0, 0, 1)]}, epoch=epoch + 2)
        self._acknowledge("nothing", {}, epoch=epoch + 3)
        self._acknowledge("none of a partition", {0: []}, epoch=epoch + 4)
        both: dict[int, Any] = {0: [acked(0, 0, _ACCEPT)], 1: [], 9: [acked(0, 0, _ACCEPT)]}
        self._acknowledge("some of some", both, epoch=epoch + 5)
        self._acknowledge("again", {0: [acked(0, 0, _ACCEPT)]}, epoch=epoch + 6)
        each = [acked(1, 4, _ACCEPT, _RELEASE, _REJECT, 0)]
        self._acknowledge("one by one", {0: each}, epoch=epoch + 7)
        self._acknowledge("wrong epoch", {0: each}, epoch=epoch + 7)
        self._share("what was released", epoch=epoch + 8, wanted={})
        self._acknowledge("at last", {0: [acked(2, 2, _ACCEPT)]}, epoch=-1)
        self._acknowledge("after that", {0: [acked(2, 2, _ACCEPT)]}, epoch=-1)
        self._describe("all but a gap", {"orders": (0, 1)})

    def _piggybacked(self) -> None:
        """Acknowledgements that come with fetches."""
        one: dict[str, Any] = {"wanted": {"orders": (1,)}}
        self._share("all five of the other", **one)
        self._share(
            "accept and go on", epoch=1, acks={1: [acked(0, 1, _ACCEPT)]}, wait_ms=200, **one
        )
        wrong: dict[int, Any] = {1: [acked(9, 9, _ACCEPT)]}
        self._share("not acquired", epoch=2, acks=wrong, wait_ms=200, **one)
        if self._version >= RENEWS_SINCE:
            none: dict[str, Any] = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "wait_ms": 0}
            renewal: dict[int, Any] = {1: [acked(2, 2, _RENEW)]}
            self._share("renew", epoch=3, acks=renewal, renews=True, **none, **one)
            self._share("renew unsaid", epoch=4, acks=renewal, wait_ms=200, **one)
            self._acknowledge("renew", renewal, epoch=5, renews=True)
            self._acknowledge("renew unsaid", renewal, epoch=6)
            self._share("said in vain", epoch=7, renews=True, **none, **one)
        last: dict[int, Any] = {1: [acked(2, 2, _ACCEPT), acked(3, 4, _RELEASE)]}
        self._share("the last words", epoch=-1, acks=last, **one)
        self._share("what was released", member="n", **one)
        self._share(
            "unknown partition",
            member="n",
            epoch=1,
            acks={1: [acked(3, 4, _ACCEPT)]},
            wanted={"orders": (1, 8)},
            wait_ms=200,
        )
        self._end("n")
        self._describe("done", {"orders": (0, 1)})

    def _bounds(self) -> None:
        """Fetch nothing at all, and more than there is."""
        one: dict[str, Any] = {"wanted": {"bills": (0,)}}
        self._share("no bytes", max_bytes=0, **one)
        self._share("no records", epoch=1, max_records=0, wanted={})
        self._share("too many bytes", epoch=2, min_bytes=BIG, wait_ms=200, wanted={})
        self._end("m")
        self._share("no wait", wait_ms=0, **one)
        self._end("m")
        self._share("few bytes", max_bytes=10, **one)
        self._end("m")

    def _leaving(self) -> None:
        """A closed connection releases its member's records, and another member acquires them."""
        link = self._connect()
        one: dict[str, Any] = {"wanted": {"bills": (0,)}}
        self._share("acquired", connection=link, **one)
        link.close()
        self._main.wait(PAUSE_MS)
        self._share("its session", epoch=1, wanted={})
        self._share("by another", member="n", **one)
        self._end("n")

    def _locks(self) -> None:
        """A lock runs out; at the limit of deliveries records are given up."""
        change = [
            {"name": "share.record.lock.duration.ms", "configOperation": 0, "value": str(LOCK_MS)},
            {"name": "share.delivery.count.limit", "configOperation": 0, "value": "5"},
        ]
        resource = {"resourceType": _GROUP_RESOURCE, "resourceName": "hasty", "configs": change}
        fields = {"resources": [resource], "validateOnly": False}
        self._ask("settings of a group", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, fields)
        self._start("hasty", "bills")
        one: dict[str, Any] = {"wanted": {"bills": (0,)}, "group": "hasty"}
        self._share("for a second", **one)
        self._main.wait(LOCK_MS + 2 * PAUSE_MS)
        late = {0: [acked(0, 4, _ACCEPT)]}
        self._acknowledge("too late", late, group="hasty", topic="bills")
        self._share("once more", epoch=2, **one)
        self._end("m", "hasty")
        self._share("a third time", **one)
        self._end("m", "hasty")
        self._share("a fourth time", **one)
        self._end("m", "hasty")
        self._share("the last time", **one)
        self._end("m", "hasty")
        self._share("given up", wait_ms=200, **one)
        self._end("m", "hasty")
        self._describe("given up", {"bills": (0,)}, "hasty")

    def _too_many_sessions(self) -> None:
        """Open five sessions where four are allowed: the fifth is refused after its wait."""
        links = [self._connect() for _ in range(5)]
        for number, link in enumerate(links):
            self._share(f"session {number}", f"s{number}", connection=link, wait_ms=100)
        self._share("begun anew", "s0", connection=links[0], wait_ms=100)
        for link in links:
            link.close()
            self._main.wait(PAUSE_MS)

    def _moved_log(self) -> None:
        """Records are deleted before they are read."""
        self._share("one batch", wanted={"cut": (0,)}, max_records=1)
        partition = {"partitionIndex": 0, "offset": 4}
        fields = {"topics": [{"name": "cut", "partitions": [partition]}], "timeoutMs": 5_000}
        self._main.call(ApiKey.DELETE_RECORDS, 2, fields)
        self._share("what is left", epoch=1, wanted={})
        self._share("and then", epoch=2, wanted={}, wait_ms=200)
        self._end("m")
        self._share("by another", "n", wanted={"cut": (0,)}, wait_ms=200)
        self._end("n")
        self._describe("a log that begins later", {"cut": (0,)})

    def _deleted_topic(self) -> None:
        """A topic goes in the middle of it."""
        self._share("acquired", wanted={"doomed": (0,)})
        fields = {"topics": [{"name": "doomed", "topicId": ZERO_UUID}], "timeoutMs": 5_000}
        self._main.call(ApiKey.DELETE_TOPICS, 6, fields)
        self._main.wait(2 * PAUSE_MS)
        self._share("gone", epoch=1, wanted={}, wait_ms=200)
        gone = {0: [acked(0, 4, _ACCEPT)]}
        self._acknowledge("acknowledged", gone, epoch=2, topic="doomed")
        self._end("m")
        self._describe("of a topic that is gone", {"doomed": (0,)})

    def _heartbeats(self) -> None:
        """What ShareGroupHeartbeat and ShareGroupDescribe refuse."""
        for member in ("", "x" * 37, "m"):
            for epoch, topics in ((0, None), (0, []), (0, ["orders"]), (3, None), (-1, None)):
                fields: Fields = {
                    "groupId": "beating",
                    "memberId": member,
                    "memberEpoch": epoch,
                    "subscribedTopicNames": topics,
                }
                label = f"heartbeat of {member:.2} at {epoch} of {topics}"
                self._ask(label, ApiKey.SHARE_GROUP_HEARTBEAT, 1, fields)
        for wants in (False, True):
            names = ["beating", "nothing", ""]
            fields = {"groupIds": names, "includeAuthorizedOperations": wants}
            self._ask("described", ApiKey.SHARE_GROUP_DESCRIBE, 1, fields)

    def _describe(self, label: str, topics: Fields | None, group: str = GROUP) -> None:
        """DescribeShareGroupOffsets, in both versions."""
        asked = (
            None
            if topics is None
            else [
                {"topicName": name, "partitions": list(partitions)}
                for name, partitions in topics.items()
            ]
        )
        fields = {"groups": [{"groupId": group, "topics": asked}]}
        for version in (0, 1):
            api = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
            self._ask(f"offsets: {label}", api, version, fields)

    def _offsets(self) -> None:
        """Offsets of groups: described, altered and deleted."""
        self._describe("all", None)
        self._describe("none", {})
        self._describe("unknown topic", {"nothing": (0, 1)})
        self._describe("unknown partition", {"orders": (0, 5)})
        self._describe("unknown group", None, "nothing")
        self._describe("topics of an unknown group", {"orders": (0,)}, "nothing")
        several = [{"groupId": name, "topics": None} for name in (GROUP, "nothing", "hasty")]
        for groups in (several, []):
            asked: Fields = {"groups": groups}
            self._ask("offsets of several", ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, asked)
        for group in (GROUP, "", "other"):
            self._alter(group, {"orders": (0, 5), "nothing": (0,), "bills": ()})
        self._describe("altered", None, "other")
        for group in ("other", "nothing", ""):
            topics = [{"topicName": name} for name in ("orders", "nothing", "bills")]
            fields: Fields = {"groupId": group, "topics": topics}
            self._ask(f"deleted of {group}", ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, fields)
        self._describe("deleted", None, "other")

    def _alter(self, group: str, topics: dict[str, tuple[int, ...]]) -> None:
        fields = {
            "groupId": group,
            "topics": [
                {
                    "topicName": name,
                    "partitions": [
                        {"partitionIndex": each, "startOffset": 3} for each in partitions
                    ],
                }
                for name, partitions in topics.items()
            ],
        }
        self._ask(f"altered of {group}", ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, fields)

    def _switched_off(self) -> None:
        """Every API, when `share.version` is at level 0; and when it is on again."""
        self._share("while it is on", wanted={"bills": (0,)})
        self._move_feature(0, _SAFE_DOWNGRADE)
        self._share("off", epoch=1, wanted={})
        self._acknowledge("off", {})
        self._describe("off", None)
        self._alter("off", {"orders": (0,)})
        deleted = {"groupId": "off", "topics": [{"topicName": "orders"}]}
        self._ask("off: deleted", ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, deleted)
        beat = {"groupId": "off", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["t"]}
        self._ask("off: heartbeat", ApiKey.SHARE_GROUP_HEARTBEAT, 1, beat)
        described = {"groupIds": ["off", "on"], "includeAuthorizedOperations": True}
        self._ask("off: described", ApiKey.SHARE_GROUP_DESCRIBE, 1, described)
        self._move_feature(1, 1)
        self._share("the session is gone", epoch=1, wanted={})
        self._share("on again", wanted={"bills": (0,)})
        self._end("m")

    def _move_feature(self, level: int, kind: int) -> None:
        update = {"feature": "share.version", "maxVersionLevel": level, "upgradeType": kind}
        fields = {"timeoutMs": 5_000, "featureUpdates": [update], "validateOnly": False}
        self._ask(f"share.version {level}", ApiKey.UPDATE_FEATURES, 1, fields)
        self._main.wait(2 * PAUSE_MS)


def acked(first: int, last: int, *types: int) -> Fields:
    """Consecutive records with one type, or one for each."""
    return {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": list(types)}


def wrong_batches() -> tuple[tuple[str, list[Fields]], ...]:
    """Acknowledgements of one partition that are refused."""
    return (
        ("backwards", [acked(1, 0, _ACCEPT)]),
        ("out of order", [acked(2, 3, _ACCEPT), acked(0, 1, _ACCEPT)]),
        ("no types", [acked(0, 1)]),
        ("too few types", [acked(0, 2, _ACCEPT, _ACCEPT)]),
        ("unknown type", [acked(0, 1, 5)]),
        ("negative type", [acked(0, 1, -1)]),
        ("a renewal unsaid", [acked(0, 1, _RENEW)]),
        ("after the end", [acked(9, 12, _ACCEPT)]),
        ("past the end", [acked(3, 12, _ACCEPT)]),
        ("two alike", [acked(0, 1, _RELEASE), acked(1, 2, _RELEASE)]),
    )
