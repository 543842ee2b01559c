"""The commands of a script about the broker: its settings, time, its log, its leadership.

Each takes the words behind its name; its docstring is how a script says it.
"""

from typing import Final

from conformance.script import requests
from conformance.script.bodies import text
from conformance.script.comparing import names_of, options_of
from conformance.script.stage import Stage
from conformance.targets.target import Capability, Json, Outcome, Unsupported

_BEAT_MS: Final = 250
_TYPE_OF_OFFSET: Final = 1
_TYPE_OF_GROUP: Final = 2


def broker(stage: Stage, words: list[str]) -> None:
    """`broker delay=3000 size=4 topics=t,u retention=1 check=1000 ...`: a new broker."""
    stage.start(options_of(words))


def switch_group(stage: Stage, words: list[str]) -> None:
    """`group g1`: the requests from here on are of another group, `-` for the empty name."""
    stage.group = "" if words[0] == "-" else words[0]


def topic(stage: Stage, words: list[str]) -> Outcome:
    """`topic remove t`: the topic is deleted."""
    return _operate(stage, Capability.TOPICS, {"op": "topics", "remove": words[1:]})


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


def stable(stage: Stage, words: list[str]) -> None:
    """As `completing`, then everyone syncs; a member's work is its name in lower case."""
    completing(stage, words)
    labels = [name.partition(":")[0] for name in names_of(words)]
    work = [f"{name}={name.lower()}" for name in labels]
    for label in labels:
        stage.observe(requests.sync(stage, [label, *work]))


# -- time ----------------------------------------------------------------------------------


def wait(stage: Stage, words: list[str]) -> Outcome:
    """`wait 1000 [beating=A,B]`: time passes while those members heartbeat."""
    beating = list(filter(None, options_of(words).get("beating", "").split(",")))
    left_ms = int(words[0])
    stage.ready()
    steps: list[Outcome] = []
    while beating and left_ms > _BEAT_MS:
        steps.append(stage.target.advance(_BEAT_MS))
        left_ms -= _BEAT_MS
        for label in beating:
            step = requests.heartbeat(stage, [label])
            steps.append(Outcome(step.answers[:-1], step.records))
    steps.append(stage.target.advance(left_ms))
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
    """`append t-0=5 [pid=]`, `append t-0=`, `append group gen=7 members=A,B`, `append group=`."""
    options = options_of(words)
    record: Json
    if words[0] == "group=":
        record = {"key": _group_key(stage), "value": None}
    elif words[0] == "group":
        record = {"key": _group_key(stage), "value": _group_value(stage, options)}
    else:
        name, _, offset = words[0].partition("=")
        of, _, index = name.rpartition("-")
        data = {"group": stage.group, "topic": of, "partition": int(index)}
        record = {
            "key": {"type": _TYPE_OF_OFFSET, "data": data},
            "value": _offset_value(int(offset)) if offset else None,
        }
    operation: Json = {"op": "append", "group": stage.group, "records": [record]}
    return _operate(stage, Capability.FAILOVER, operation)


def _offset_value(offset: int) -> Json:
    data = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 0}
    return {"version": 3, "data": data}


def _group_key(stage: Stage) -> Json:
    return {"type": _TYPE_OF_GROUP, "data": {"group": stage.group}}


def _group_value(stage: Stage, options: dict[str, str]) -> Json:
    """A Stable group of the named members, or an Empty one; the members are known from now on."""
    labels = list(filter(None, options.get("members", "").split(",")))
    for label in labels:
        stage.actor(label).member_id = f"id-of-{label}"
        stage.actor(label).generation_id = int(options["gen"])
    version = {"L": 1}.get(stage.family, 3)
    return {
        "version": version,
        "data": {
            "protocolType": "consumer",
            "generation": int(options["gen"]),
            "protocol": "range" if labels else None,
            "leader": stage.id_of(labels[0]) if labels else None,
            **({"currentStateTimestamp": 0} if version > 1 else {}),
            "members": [_member(stage, label, version) for label in labels],
        },
    }


def _member(stage: Stage, label: str, version: int) -> Json:
    return {
        "memberId": stage.id_of(label),
        **({"groupInstanceId": None} if version > 1 else {}),
        "clientId": label,
        "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 60_000,
        "sessionTimeout": 10_000,
        "subscription": text(b"range"),
        "assignment": text(label.lower().encode()),
    }


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
    """`load begin` and `load failed`: a load that is under way, or ends with an error."""
    op = {"begin": "beginLoad", "failed": "failLoad"}[words[0]]
    return _operate(stage, Capability.INSIDE, {"op": op, "group": stage.group})


def force(stage: Stage, words: list[str]) -> Outcome:
    """`force Dead`: put the group into a state that no request leads to."""
    operation = {"op": "force", "group": stage.group, "state": words[0]}
    return _operate(stage, Capability.INSIDE, operation)


def compact(stage: Stage, _words: list[str]) -> Outcome:
    """`compact`: the log of the group's partition keeps the last record of each key."""
    return _operate(stage, Capability.INSIDE, {"op": "compact", "group": stage.group})


def _operate(stage: Stage, needed: Capability, operation: Json) -> Outcome:
    """Do it where the target can.

    Raises:
        Unsupported: the target cannot.
    """
    if not stage.target.offers(needed):
        raise Unsupported(f"{stage.target.name} does not offer {needed.value}")
    stage.ready()
    return stage.target.operate(operation)


# -- questions -----------------------------------------------------------------------------


def state(stage: Stage, words: list[str]) -> None:
    """`state Stable [gen= leader= members= pending= type=]`, `state none`."""
    stage.ready()
    view = stage.target.view(stage.group)
    if view is None:
        stage.expect(f"state {' '.join(words)}", " ".join(words), [("none", {})])
        return
    fields = {
        "gen": None if view.generation_id is None else str(view.generation_id),
        "leader": None if view.leader is None else stage.named(view.leader),
        "members": _labels(stage, view.member_ids),
        "pending": _labels(stage, view.pending_ids),
        "type": None if view.protocol_type is None else view.protocol_type or "-",
    }
    known = {name: value for name, value in fields.items() if value is not None}
    asked = [word for word in words if "=" not in word or word.partition("=")[0] in known]
    stage.expect(f"state {' '.join(words)}", " ".join(asked), [(view.state, known)])


def _labels(stage: Stage, ids: tuple[str, ...] | None) -> str | None:
    return None if ids is None else ",".join(sorted(stage.named(each) for each in ids)) or "-"


def log(stage: Stage, words: list[str]) -> None:
    """`log none`, `log group gen=2 leader=A members=A,B`, `log offset t-0=10; group gone=yes`."""
    joined = " ".join(words)
    wanted = [] if joined == "none" else [part.split() for part in joined.split(";")]
    stage.expect_records(f"log {joined}", wanted)


def partition(stage: Stage, words: list[str]) -> None:
    """`partition my-group 12`: where a group lives, `-` for the empty name."""
    stage.ready()
    found = stage.target.partition_of("" if words[0] == "-" else words[0])
    stage.expect(f"partition {words[0]}", words[1], [(str(found), {})])


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
        stage.expect(f"transition {before} {after}", wanted, [(made, {})])
