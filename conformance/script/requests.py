"""Script commands that send requests: sender, content and version.

Each takes the words after its name; its docstring shows its form in a script.
"""

from coordinator_sim_conformance.script import bodies, consumer_blobs
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.stage import Actor, Stage
from coordinator_sim_conformance.targets.target import Capability, Outcome, Unsupported

_ONE_STEP_JOIN = 3
_TWO_STEP_JOIN = 9
_WIDE = "\U0001f600"
"""A letter of two UTF-16 units."""
_ACCENTED = "\u00e9"
"""A letter of two bytes, and one UTF-16 unit."""


def join(stage: Stage, words: list[str]) -> Outcome:
    """`join A [v= id= type= protocols= meta= topics= session= rebalance= client= on=]`.

    A member subscribes to no topics unless `topics=t,u` says so; `topics=-` makes its metadata
    bytes that are no subscription. `own=t:0-2` tells what it has, in this request alone.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    _remember(actor, options)
    member_id = _own_id(actor, options)
    direct = _ONE_STEP_JOIN if actor.instance_id is None and not member_id else _TWO_STEP_JOIN
    version = stage.version("JoinGroup", direct, options, most=direct)
    data = bodies.join_group(
        version,
        bodies.Identity(group_id=stage.group, member_id=member_id, instance_id=actor.instance_id),
        timeouts_ms=(actor.session_timeout_ms, actor.rebalance_timeout_ms),
        protocol_type=actor.protocol_type,
        protocols={name: _metadata(actor, name, options.get("own")) for name in actor.protocols},
    )
    stage.ready()
    known = [] if member_id else stage.ids_of_group()
    outcome = stage.call(words[0], "JoinGroup", version, data, options)
    outcome = stage.with_first_answer(outcome)
    if not member_id and not stage.is_answered(outcome):
        found = stage.ids_of_group()
        fresh = [each for each in found or () if each not in (known or ())]
        actor.member_id = fresh[0] if fresh else actor.member_id
        actor.is_hidden = found is None
    return outcome


def _own_id(actor: Actor, options: Words) -> str:
    """Return the member id that a request carries.

    Raises:
        Unsupported: the member has one, and the target has not shown it.
    """
    if actor.is_hidden and "id" not in options:
        raise Unsupported("wants the id of a member whose JoinGroup waits, and nothing shows it")
    return options.get("id", actor.member_id)


def _remember(actor: Actor, options: Words) -> None:
    """Keep a member's fields for its next JoinGroup."""
    actor.protocol_type = options.get("type", actor.protocol_type)
    protocols = options.get("protocols", ",".join(actor.protocols))
    actor.protocols = tuple(filter(None, protocols.split(",")))
    actor.metadata = options.get("meta", actor.metadata)
    if "topics" in options:
        topics = options["topics"]
        actor.topics = None if topics == "-" else tuple(topics.split(","))
    actor.session_timeout_ms = int(options.get("session", actor.session_timeout_ms))
    actor.rebalance_timeout_ms = int(options.get("rebalance", actor.rebalance_timeout_ms))


def _metadata(actor: Actor, protocol: str, owned: str | None) -> bytes:
    """Return a subscription to the member's topics; no bytes for a member without topics."""
    if actor.topics is None:
        return b""
    if owned is not None:
        user_data = f"{protocol}{actor.metadata}".encode()
        return consumer_blobs.subscription(actor.topics, user_data, owned)
    return bodies.subscription(actor.topics, f"{protocol}{actor.metadata}".encode())


def _identity(stage: Stage, actor: Actor, options: Words) -> bodies.Identity:
    """Return a member's identity, with the command's changes."""
    return bodies.Identity(
        group_id=stage.group,
        member_id=_own_id(actor, options),
        instance_id=options.get("i", actor.instance_id),
        generation_id=stage.number(options.get("gen", str(actor.generation_id))),
    )


def sync(stage: Stage, words: list[str]) -> Outcome:
    """`sync A [gen= v= id= type= name= on=] [A=work B=t:0-2 ...]`; `type=-` says null.

    Work with a colon is an assignment of a consumer.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    version = stage.version("SyncGroup", 5, options)
    data = bodies.sync_group(
        version,
        _identity(stage, actor, options),
        protocol=(
            _nullable(options.get("type", actor.protocol_type)),
            _nullable(options.get("name", actor.protocol_name)),
        ),
        assignments={
            stage.id_of(name): consumer_blobs.assignment(work) if ":" in work else work.encode()
            for name, work in options.items()
            if name[0].isupper()
        },
    )
    return stage.call(words[0], "SyncGroup", version, data, options)


def _nullable(word: str) -> str | None:
    return None if word == "-" else word


def heartbeat(stage: Stage, words: list[str]) -> Outcome:
    """`heartbeat A [gen= id= i= on=]`."""
    options = options_of(words[1:])
    version = stage.version("Heartbeat", 4, options)
    data = bodies.heartbeat(version, _identity(stage, stage.actor(words[0]), options))
    return stage.call(words[0], "Heartbeat", version, data, options)


def leave(stage: Stage, words: list[str]) -> Outcome:
    """`leave A :i1 ghost:i2 [v= on=]`: members, instances alone, or made-up ids."""
    options = options_of(words)
    version = stage.version("LeaveGroup", 5, options)
    members = [
        (stage.id_of(name), instance_id or None)
        for name, _, instance_id in (entry.partition(":") for entry in names_of(words))
    ]
    data = bodies.leave_group(version, stage.group, members)
    return stage.call("leave", "LeaveGroup", version, data, options)


def commit(stage: Stage, words: list[str]) -> Outcome:
    """`commit A t-0=10 [gen= id= i= v= epoch= meta= retention= unit=]`, `-` for nobody.

    `t-0=10/4096` brings metadata of so many letters; `unit=wide` takes letters of two UTF-16
    units, `unit=accented` of two bytes.
    """
    options = options_of(words[1:])
    actor = Actor() if words[0] == "-" else stage.actor(words[0])
    version = stage.version("OffsetCommit", 8, options)
    data = bodies.offset_commit(
        version,
        _identity(stage, actor, options),
        _offsets(options),
        int(options.get("retention", -1)),
    )
    return stage.call(words[0], "OffsetCommit", version, data, options)


def commit_in_transaction(stage: Stage, words: list[str]) -> Outcome:
    """`txn A t-0=10 pid=1000 [pepoch=2 gen= id= i= v=]`, `-` for nobody."""
    options = options_of(words[1:])
    actor = Actor() if words[0] == "-" else stage.actor(words[0])
    version = stage.version("TxnOffsetCommit", 3, options)
    producer = (int(options["pid"]), int(options.get("pepoch", 2)))
    data = bodies.txn_offset_commit(
        version, _identity(stage, actor, options), _offsets(options), producer
    )
    return stage.call(words[0], "TxnOffsetCommit", version, data, options)


def _offsets(options: Words) -> list[bodies.Offset]:
    unit = {"wide": _WIDE, "accented": _ACCENTED}.get(options.get("unit", ""), "x")
    found = []
    for name, value in options.items():
        topic, dash, index = name.rpartition("-")
        if dash:
            offset, _, length = value.partition("/")
            found.append(
                bodies.Offset(
                    topic=topic,
                    partition=int(index),
                    offset=int(offset),
                    leader_epoch=int(options.get("epoch", -1)),
                    metadata=unit * int(length) if length else options.get("meta", ""),
                )
            )
    return found


def _partitions(words: list[str]) -> list[tuple[str, int]]:
    """Return the partitions named `t-0`."""
    return [
        (topic, int(index))
        for topic, _, index in (name.rpartition("-") for name in names_of(words) if name != "*")
    ]


def fetch(stage: Stage, words: list[str]) -> Outcome:
    """`fetch t-0 t-1 [stable=1 groups=g1,g2 v= member= epoch=]`, `*` for everything."""
    options = options_of(words)
    version = stage.version("OffsetFetch", 8, options)
    data = bodies.offset_fetch(
        version,
        options.get("groups", stage.group).split(","),
        None if "*" in words else _partitions(words),
        require_stable="stable" in options,
        member=(options.get("member"), stage.number(options.get("epoch", "-1"))),
    )
    return stage.call("fetch", "OffsetFetch", version, data, options)


def erase(stage: Stage, words: list[str]) -> Outcome:
    """`erase t-0 t-1`: an OffsetDelete."""
    data = bodies.offset_delete(stage.group, _partitions(words))
    return stage.call("erase", "OffsetDelete", 0, data, options_of(words))


def describe(stage: Stage, words: list[str]) -> Outcome:
    """`describe [g1 g2] [v=]`: the script's group, or others."""
    options = options_of(words)
    version = stage.version("DescribeGroups", 5, options)
    data = bodies.describe_groups(version, names_of(words) or [stage.group])
    return stage.call("describe", "DescribeGroups", version, data, options)


def list_groups(stage: Stage, words: list[str]) -> Outcome:
    """`list [states=Stable,Empty types=classic v=]`."""
    options = options_of(words)
    version = stage.version("ListGroups", 5, options)
    states, types = (
        list(filter(None, options.get(name, "").split(","))) for name in ("states", "types")
    )
    return stage.call(
        "list", "ListGroups", version, bodies.list_groups(version, states, types), options
    )


def delete_groups(stage: Stage, words: list[str]) -> Outcome:
    """`delete [g1 g2]`: the script's group, or others."""
    options = options_of(words)
    version = stage.version("DeleteGroups", 2, options)
    data = bodies.delete_groups(names_of(words) or [stage.group])
    return stage.call("delete", "DeleteGroups", version, data, options)


def find(stage: Stage, words: list[str]) -> Outcome:
    """`find [g1 g2] [type=0 v=1]`: a FindCoordinator."""
    stage.need(Capability.CLUSTER)
    options = options_of(words)
    version = stage.version("FindCoordinator", 1, options)
    keys = names_of(words) or [stage.group]
    data = bodies.find_coordinator(version, keys, int(options.get("type", 0)))
    return stage.call("find", "FindCoordinator", version, data, options)
