"""Script commands about the broker: its settings, time, log and leadership.

Each takes the words after its name; its docstring shows its form in a script.
"""

from functools import partial
from typing import Final

from coordinator_sim.log.format.offsets_records import encode_key, encode_value
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import LogKey, LogValue, OpaqueKey
from coordinator_sim_conformance.script import requests
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.script.bodies import text
from coordinator_sim_conformance.script.comparing import Observed, names_of, options_of
from coordinator_sim_conformance.script.stage import Stage
from coordinator_sim_conformance.targets.target import (
    Capability,
    GroupView,
    Json,
    Outcome,
    Unsupported,
)

_UNKNOWN_TAG: Final = bytes((1, 99, 3)) + b"tag"
"""One tagged field, number 99, of three bytes, in place of the 0 that means none."""
_FLEXIBLE_VERSION: Final = 4


def record_of(stage: Stage, words: list[str]) -> Json:
    """Return the record of an `append`.

    Its forms: `t-0=5` an offset, `t-0=` its tombstone, `group gen=7 members=A,B` a Stable group of
    these members, `group=` its tombstone, `key=99` a key of that version. `tags=yes` writes the
    value in version 4 with an unknown tagged field, `version=1` in that version. `at=1000000` is
    when an offset was committed, in milliseconds.
    """
    options = options_of(words)
    if words[0] == "group":
        return _record(GroupMetadataKey(stage.group), _group(stage, options), stage, options)
    name, _, said = words[0].partition("=")
    if name == "group":
        return _record(GroupMetadataKey(stage.group), None, stage, options)
    if name == "key":
        return {"key": text(encode_key(OpaqueKey(int(said), b"\0\1x"))), "value": text(b"\0\0")}
    topic, _, index = name.rpartition("-")
    at_ms = int(options.get("at", -1))
    value = OffsetCommitValue(offset=int(said), commit_timestamp=at_ms) if said else None
    return _record(OffsetCommitKey(stage.group, topic, int(index)), value, stage, options)


def _record(key: LogKey, value: LogValue | None, stage: Stage, options: Words) -> Json:
    has_tags = "tags" in options
    usual = {"L": 1}.get(stage.family, 3)
    version = _FLEXIBLE_VERSION if has_tags else int(options.get("version", usual))
    data = None if value is None else encode_value(value, version)
    if data is not None and has_tags:
        data = data[:-1] + _UNKNOWN_TAG
    return {"key": text(encode_key(key)), "value": None if data is None else text(data)}


def _group(stage: Stage, options: Words) -> GroupMetadataValue:
    """Return a Stable group of the named members, who are known to the script from now on."""
    labels = options["members"].split(",")
    for label in labels:
        stage.actor(label).member_id = f"id-of-{label}"
        stage.actor(label).generation_id = int(options["gen"])
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=int(options["gen"]),
        protocol="range",
        leader=stage.id_of(labels[0]),
        members=tuple(
            MemberMetadata(
                member_id=stage.id_of(label),
                group_instance_id=None,
                client_id=label,
                client_host="/127.0.0.1",
                rebalance_timeout=60_000,
                session_timeout=10_000,
                subscription=b"range",
                assignment=label.lower().encode(),
            )
            for label in labels
        ),
    )


_BEAT_MS: Final = 250


def broker(stage: Stage, words: list[str]) -> None:
    """`broker delay=3000 size=4 topics=t,u retention=1 started=no ...`: a new broker."""
    stage.start(options_of(words))


def switch_group(stage: Stage, words: list[str]) -> None:
    """`group g1`: the requests from here on are of another group, `-` for the empty name."""
    stage.group = "" if words[0] == "-" else words[0]


def topic(stage: Stage, words: list[str]) -> Outcome:
    """`topic remove t`: the topic is deleted; `topic add t 2`: it is created, or grows."""
    if words[0] == "add":
        added = [{"name": words[1], "partitions": int(words[2])}]
        return _operate(stage, Capability.TOPICS, {"op": "topics", "set": added})
    return _operate(stage, Capability.TOPICS, {"op": "topics", "remove": words[1:]})


def cluster(stage: Stage, words: list[str]) -> Outcome:
    """`cluster fresh`: nobody asked for a group yet; `cluster leaderless`: `g` has no leader."""
    op = {"fresh": "removeOffsetsTopic", "leaderless": "removeLeader"}[words[0]]
    return _operate(stage, Capability.CLUSTER, {"op": op, "group": stage.group})


# -- members at once -----------------------------------------------------------------------


def completing(stage: Stage, words: list[str]) -> None:
    """Bring members in one after the other: as many generations as members, none synced."""
    labels = names_of(words)
    options = [word for word in words if "=" in word]
    stage.ready()
    for count, label in enumerate(labels):
        stage.observe(requests.join(stage, [label, *options]))
        for earlier in labels[:count]:
            stage.observe(requests.join(stage, [earlier]))
        stage.observe(stage.target.advance(stage.delay_ms))
        stage.await_answers()


def stable(stage: Stage, words: list[str]) -> None:
    """Bring members in like `completing` and sync all; the work of A is `a`, and so on."""
    completing(stage, words)
    labels = [name.partition(":")[0] for name in names_of(words)]
    work = [f"{name}={name.lower()}" for name in labels]
    for label in labels:
        stage.observe(requests.sync(stage, [label, *work]))


# -- time ----------------------------------------------------------------------------------


def wait(stage: Stage, words: list[str]) -> Outcome:
    """`wait 1000 [beating=A,B]`: time passes while those members heartbeat.

    A number that ends in 9, such as 999, ends before what happens a millisecond later; where time
    is real, any other ends after what happens then.
    """
    beating = list(filter(None, options_of(words).get("beating", "").split(",")))
    left_ms = int(words[0])
    stage.ready()
    steps: list[Outcome] = []
    while beating and left_ms > _BEAT_MS:
        steps.append(stage.target.advance(_BEAT_MS, early=True))
        left_ms -= _BEAT_MS
        steps += [stage.unwatched(requests.heartbeat(stage, [label])) for label in beating]
    steps.append(stage.target.advance(left_ms, early=words[0].endswith("9")))
    return Outcome(
        tuple(answer for step in steps for answer in step.answers),
        tuple(record for step in steps for record in step.records),
    )


# -- the log -------------------------------------------------------------------------------


def hold(stage: Stage, words: list[str]) -> Outcome:
    """`hold`: nothing is replicated until `release`; `hold off`: what is appended now, is."""
    return _operate(stage, Capability.FAULTS, {"op": "hold", "hw": words != ["off"]})


def release(stage: Stage, words: list[str]) -> Outcome:
    """`release [to=2]`: replication catches up, or up to that log position."""
    operation: Json = {"op": "commit"}
    to = options_of(words).get("to")
    if to is not None:
        operation |= {"group": stage.group, "offset": int(to)}
    return _operate(stage, Capability.FAULTS, operation)


def fail(stage: Stage, words: list[str]) -> Outcome:
    """`fail ERROR`: the next append fails so."""
    return _operate(stage, Capability.FAULTS, {"op": "fail", "append": words[0], "count": 1})


def append(stage: Stage, words: list[str]) -> Outcome:
    """Put a record of another leader into the log; see `appending.record_of` for its forms."""
    if words == ["empty"]:
        return _operate(stage, Capability.INSIDE, {"op": "appendEmpty", "group": stage.group})
    record = record_of(stage, words)
    operation: Json = {"op": "append", "group": stage.group, "records": [record]}
    return _operate(stage, Capability.FAILOVER, operation)


def marker(stage: Stage, words: list[str]) -> Outcome:
    """`marker COMMIT pid=1000 [pepoch=2 group=]`: the producer's transaction ends."""
    options = options_of(words)
    operation = {
        "op": "endTxn",
        "id": 0,
        "group": options.get("group", stage.group),
        "producerId": int(options["pid"]),
        "producerEpoch": int(options.get("pepoch", 2)),
        "commit": words[0] == "COMMIT",
        "transactionVersion": 0,
    }
    return _operate(stage, Capability.MARKERS, operation)


# -- leadership ----------------------------------------------------------------------------


def resign(stage: Stage, words: list[str]) -> Outcome:
    """`resign [epoch=] [group=]`: give up every offsets partition, or one group's."""
    return _operate(stage, Capability.FAILOVER, {"op": "resign", **_leadership(words)})


def elect(stage: Stage, words: list[str]) -> Outcome:
    """`elect [epoch=2] [group=]`: lead every offsets partition again, from the log."""
    operation = {"op": "elect", "epoch": 2, **_leadership(words)}
    return _operate(stage, Capability.FAILOVER, operation)


def _leadership(words: list[str]) -> Json:
    options = options_of(words)
    found: Json = {} if "group" not in options else {"group": options["group"]}
    if "epoch" in options:
        found["epoch"] = int(options["epoch"])
    return found


def load(stage: Stage, words: list[str]) -> Outcome:
    """`load begin`, `load failed`, `load short batches=1`.

    A load that is under way, one that ends with an error, one that reads no bytes after so many
    batches though the log goes on.
    """
    op = {"begin": "beginLoad", "failed": "failLoad", "short": "shortLoad"}[words[0]]
    batches = int(options_of(words).get("batches", "0"))
    needed = Capability.LOADING if words[0] == "begin" else Capability.INSIDE
    return _operate(stage, needed, {"op": op, "group": stage.group, "batches": batches})


def force(stage: Stage, words: list[str]) -> Outcome:
    """`force Dead`: put the group into a state that no request leads to."""
    operation = {"op": "force", "group": stage.group, "state": words[0]}
    return _operate(stage, Capability.INSIDE, operation)


def compact(stage: Stage, _words: list[str]) -> Outcome:
    """`compact`: a pass of the log cleaner over the log of the group's partition."""
    return _operate(stage, Capability.INSIDE, {"op": "compact", "group": stage.group})


def startup(stage: Stage, _words: list[str]) -> Outcome:
    """`startup`: the coordinator of `broker started=no` takes requests from now on."""
    return _operate(stage, Capability.LIFE, {"op": "startup"})


def shutdown(stage: Stage, _words: list[str]) -> Outcome:
    """`shutdown`: the coordinator is stopped for good."""
    return _operate(stage, Capability.LIFE, {"op": "shutdown"})


def _operate(stage: Stage, needed: Capability, operation: Json) -> Outcome:
    """Run an operation if the target can.

    Raises:
        Unsupported: the target cannot.
    """
    stage.need(needed)
    return stage.target.operate(operation)


# -- expectations ----------------------------------------------------------------------


def state(stage: Stage, words: list[str]) -> None:
    """`state Stable [gen= leader= members= pending= type=]`, `state none`."""
    stage.ready()

    def shown() -> Observed:
        view = stage.target.view(stage.group)
        return ("none", {}) if view is None else (view.state, _shown_fields(stage, view))

    try:
        known = shown()[1]
    except Unsupported as hidden:
        stage.unshown = str(hidden)
        line = f"state {' '.join(words)}"
        stage.transcript.append(f"{line:<40} | not shown")
        return
    asked = [
        word for word in words if not known or "=" not in word or word.partition("=")[0] in known
    ]
    stage.expect_view(f"state {' '.join(words)}", " ".join(asked), shown)


def _shown_fields(stage: Stage, view: GroupView) -> Words:
    """Return the fields of a group that the target shows, in the script's words."""
    fields = {
        "gen": None if view.generation_id is None else str(view.generation_id),
        "leader": None if view.leader is None else stage.named(view.leader),
        "members": _labels(stage, view.member_ids),
        "pending": _labels(stage, view.pending_ids),
        "type": None if view.protocol_type is None else view.protocol_type or "-",
    }
    return {name: value for name, value in fields.items() if value is not None}


def _labels(stage: Stage, ids: tuple[str, ...] | None) -> str | None:
    return None if ids is None else ",".join(sorted(stage.named(each) for each in ids)) or "-"


def log(stage: Stage, words: list[str]) -> None:
    """`log none`, `log group gen=2 leader=A members=A,B`, `log offset t-0=10; group gone=yes`."""
    joined = " ".join(words)
    wanted = [] if joined == "none" else [part.split() for part in joined.split(";")]
    stage.expect_records(f"log {joined}", wanted)


def stored(stage: Stage, words: list[str]) -> None:
    """`stored offset t-0=10`: the log of the group's partition as it is, in order."""
    found = _operate(stage, Capability.INSIDE, {"op": "stored", "group": stage.group})
    stage.records[:] = found.records
    log(stage, words)


def partition(stage: Stage, words: list[str]) -> None:
    """`partition my-group 12`: where a group lives, `-` for the empty name."""
    stage.ready()
    found = stage.target.partition_of("" if words[0] == "-" else words[0])
    stage.expect_view(f"partition {words[0]}", words[1], lambda: (str(found), {}))


def _plain(word: str) -> Observed:
    return word, {}


def transition(stage: Stage, words: list[str]) -> None:
    """`transition Empty Stable refused`: whether a group may go from one state to another."""
    for index in range(0, len(words), 3):
        before, after, wanted = words[index : index + 3]
        found = _operate(
            stage,
            Capability.INSIDE,
            {"op": "transition", "group": stage.group, "before": before, "after": after},
        )
        made = "made" if found.answers else "refused"
        stage.expect_view(f"transition {before} {after}", wanted, partial(_plain, made))
