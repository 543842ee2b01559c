"""Script commands of share groups (KIP-932): heartbeats, descriptions, fetches, offsets.

Each takes the words after its name; its docstring shows its form in a script. Partitions and
epochs are written as in `consumer_answers`.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.stage import CaseBroken, Stage
from coordinator_sim_conformance.targets.target import Capability, Json, Outcome

_VERSION: Final = 1
"""The first stable version, and the only one."""
_TEXTS: Final = {"none": "", "blank": " "}
_DELIVERY: Final = 2
"""Version of ShareFetch and ShareAcknowledge: the newest of 4.2, which renews locks."""
_RENEWS_SINCE: Final = 2
_OFFSETS: Final = 1
"""Version of DescribeShareGroupOffsets: the first that tells the lag."""
_TYPES: Final = {"gap": 0, "accept": 1, "release": 2, "reject": 3, "renew": 4}
"""Types of acknowledgements. Source: AcknowledgeType."""
_MOST_BYTES: Final = 1 << 20
_TRIES: Final = 40
_PAUSE_MS: Final = 500


def share(stage: Stage, words: list[str]) -> Outcome:
    """`share A [e= names= id= on=]`: a ShareGroupHeartbeat.

    A member joins at first, and later repeats the epoch it was told. `-` is null, `none` empty.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    _need_groups(stage)
    epoch = stage.number(options.get("e", str(max(actor.generation_id, 0))))
    word = options.get("names", ",".join(actor.names) if epoch == 0 else "-")
    names = None if word == "-" else [] if word == "none" else word.split(",")
    data = bodies.share_group_heartbeat(
        bodies.Identity(
            group_id=stage.group,
            member_id=_TEXTS.get(told := options.get("id", actor.member_id or words[0]), told),
            generation_id=epoch,
        ),
        names,
    )
    version = stage.version("ShareGroupHeartbeat", _VERSION, options)
    return stage.call(words[0], "ShareGroupHeartbeat", version, data, options)


def shares(stage: Stage, words: list[str]) -> Outcome:
    """`shares [g1 g2]`: a ShareGroupDescribe of the script's group, or of others."""
    _need_groups(stage)
    data = bodies.describe_new_groups(names_of(words) or [stage.group])
    version = stage.version("ShareGroupDescribe", _VERSION, options_of(words))
    return stage.call("shares", "ShareGroupDescribe", version, data, options_of(words))


def sharing(stage: Stage, words: list[str]) -> None:
    """`sharing A B [names=]`: members join, and heartbeat until each has partitions."""
    options = [word for word in words if "=" in word]
    stage.ready()
    for label in names_of(words):
        stage.observe(share(stage, [label, *options]))
        stage.await_answers()
        for _ in range(_TRIES):
            if stage.actor(label).holds != "none":
                break
            stage.observe(stage.target.advance(_PAUSE_MS))
            stage.observe(share(stage, [label]))
            stage.await_answers()
        else:
            raise CaseBroken(f"{label} has no partitions", tuple(stage.transcript))


# -- share partitions ----------------------------------------------------------------------


def sharefetch(stage: Stage, words: list[str]) -> Outcome:
    """`sharefetch A foo-0 foo-1=0-2:accept [renew e= max= batch= bytes= wait= park= mode= v= on=]`.

    A ShareFetch from partitions, some with acknowledgements: `0-2:accept,3:release`, or one type
    for each record, `0-1:gap+reject`. A session begins with the first one of a member and goes on
    with the others, which name only what is new; `forget=foo-0` drops a partition. It waits up to
    `wait=5000` ms for `min=1` byte; the script goes on when it is answered, with `park=30000` while
    it waits.
    """
    options = options_of(words[1:])
    version = stage.version("ShareFetch", _DELIVERY, options)
    data = _from_member(stage, words, version) | {
        "maxWaitMs": int(options.get("park", options.get("wait", 5_000))),
        "minBytes": int(options.get("min", 1)),
        "maxBytes": int(options.get("bytes", _MOST_BYTES)),
        "maxRecords": int(options.get("max", 500)),
        "batchSize": int(options.get("batch", 500)),
        "forgottenTopicsData": [
            {"topicId": _topic_id(stage, topic), "partitions": [partition]}
            for topic, partition in map(_place, filter(None, [options.get("forget")]))
        ],
    }
    if version >= _RENEWS_SINCE:
        data["shareAcquireMode"] = int(options.get("mode", 0))
    outcome = stage.call(words[0], "ShareFetch", version, data, options)
    return outcome if "park" in options else stage.answered(outcome)


def acknowledge(stage: Stage, words: list[str]) -> Outcome:
    """`acknowledge A foo-0=0-2:accept [renew] [e= v= on=]`: a ShareAcknowledge."""
    options = options_of(words[1:])
    version = stage.version("ShareAcknowledge", _DELIVERY, options)
    data = _from_member(stage, words, version)
    return stage.answered(stage.call(words[0], "ShareAcknowledge", version, data, options))


def _from_member(stage: Stage, words: list[str], version: int) -> Json:
    """Return what ShareFetch and ShareAcknowledge have in common."""
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    actor.sent_epoch = int(options.get("e", actor.session_epoch))
    topics: dict[str, list[Json]] = {}
    for word in words[1:]:
        place, _, batches = word.partition("=")
        if "-" in place:
            topic, partition = _place(place)
            entry = {"partitionIndex": partition, "acknowledgementBatches": list(_acks(batches))}
            topics.setdefault(_topic_id(stage, topic), []).append(entry)
    told = options.get("id", actor.member_id or words[0])
    data: Json = {
        "groupId": stage.group,
        "memberId": _TEXTS.get(told, told),
        "shareSessionEpoch": actor.sent_epoch,
        "topics": [{"topicId": each, "partitions": found} for each, found in topics.items()],
    }
    if version >= _RENEWS_SINCE:
        data["isRenewAck"] = "renew" in words
    return data


def _place(word: str) -> tuple[str, int]:
    topic, _, partition = word.rpartition("-")
    return topic, int(partition)


def _topic_id(stage: Stage, topic: str) -> str:
    stage.ready()
    if stage.topic_id(topic) == topic:
        stage.learn_topics()
    return stage.topic_id(topic)


def _acks(word: str) -> Iterator[Json]:
    """Return the acknowledgements in `0-2:accept,3:release`; `0-2:` has no type."""
    for each in filter(None, word.split(",")):
        offsets, _, types = each.partition(":")
        first, _, last = offsets.partition("-")
        yield {
            "firstOffset": int(first),
            "lastOffset": int(last or first),
            "acknowledgeTypes": [
                _TYPES[kind] if kind in _TYPES else int(kind)
                for kind in filter(None, types.split("+"))
            ],
        }


# -- offsets -------------------------------------------------------------------------------


def offsets(stage: Stage, words: list[str]) -> Outcome:
    """`offsets foo-0 foo-1`: a DescribeShareGroupOffsets of the script's group."""
    topics: dict[str, list[int]] = {}
    for topic, partition in map(_place, names_of(words)):
        topics.setdefault(topic, []).append(partition)
    asked = [{"topicName": name, "partitions": found} for name, found in topics.items()]
    data: Json = {"groups": [{"groupId": stage.group, "topics": asked}]}
    return stage.answered(stage.call("offsets", "DescribeShareGroupOffsets", _OFFSETS, data, {}))


def alter(stage: Stage, words: list[str]) -> Outcome:
    """`alter foo-0=3`: an AlterShareGroupOffsets of the script's group."""
    topics: dict[str, list[Json]] = {}
    for name, offset in options_of(words).items():
        topic, partition = _place(name)
        entry = {"partitionIndex": partition, "startOffset": int(offset)}
        topics.setdefault(topic, []).append(entry)
    asked = [{"topicName": name, "partitions": found} for name, found in topics.items()]
    data: Json = {"groupId": stage.group, "topics": asked}
    return stage.answered(stage.call("alter", "AlterShareGroupOffsets", 0, data, {}))


def forget(stage: Stage, words: list[str]) -> Outcome:
    """`forget foo bar`: a DeleteShareGroupOffsets of the script's group."""
    topics = [{"topicName": name} for name in names_of(words)]
    data: Json = {"groupId": stage.group, "topics": topics}
    return stage.answered(stage.call("forget", "DeleteShareGroupOffsets", 0, data, {}))


def _need_groups(stage: Stage) -> None:
    """Continue only if the broker of the script has share groups and tells ids of topics.

    Raises:
        Unsupported: it does not.
    """
    stage.ready()
    stage.need(Capability.SHARE_GROUPS)
    stage.learn_topics()
