"""Script commands of streams groups (KIP-1071): heartbeats and descriptions.

Each takes the words after its name; its docstring shows its form in a script. Tasks and epochs are
written as in `streams_answers`.
"""

from typing import Final

from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.consumer_answers import epoch_of
from coordinator_sim_conformance.script.consumer_blobs import partitions_of
from coordinator_sim_conformance.script.stage import Stage
from coordinator_sim_conformance.script.streams_answers import FIRST_EPOCH
from coordinator_sim_conformance.targets.target import Capability, Json, Outcome

_VERSION: Final = 0
"""The version that every release with streams groups has."""
_REBALANCE_TIMEOUT_MS: Final = 5_000
_TEXTS: Final = {"none": "", "blank": " "}
_ROUNDS: Final = 3
"""Heartbeats in which a member learns its target, gives up what it must, and gets the rest."""


def stream(stage: Stage, words: list[str]) -> Outcome:
    """`stream A [e= topics= epoch= active= process= rebalance= shutdown= i= id= on=]`.

    A StreamsGroupHeartbeat. A member joins at first with a subtopology for each topic, `0` of the
    first one, and later repeats the epoch it was told. `active=all` reports the active tasks that
    it was told to have. `-` is null, `none` empty.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    _need_groups(stage)
    epoch = epoch_of(options.get("e", str(max(actor.generation_id, 0))), FIRST_EPOCH)
    label = words[0].partition(":")[0]
    told_id = options.get("id", actor.member_id or label)
    who = bodies.Identity(
        group_id=stage.group,
        member_id=_TEXTS.get(told_id, told_id),
        instance_id=options.get("i", actor.instance_id),
        generation_id=epoch,
    )
    tasks = options.get("active", "none" if epoch == 0 else "-")
    held = actor.holds if tasks == "all" else tasks
    data = bodies.streams_group_heartbeat(
        who,
        topology=_topology(options, is_joining=epoch == 0),
        active=None if held == "-" else partitions_of(held),
        process_id=options.get("process", f"process-{label}" if epoch == 0 else None),
        rebalance_timeout_ms=int(
            options.get("rebalance", _REBALANCE_TIMEOUT_MS if epoch == 0 else -1)
        ),
        shuts_down=options.get("shutdown") == "yes",
    )
    version = stage.version("StreamsGroupHeartbeat", _VERSION, options, most=_VERSION)
    return stage.call(words[0], "StreamsGroupHeartbeat", version, data, options)


def running(stage: Stage, words: list[str]) -> None:
    """`running A B [topics= rebalance=]`: members join, and heartbeat until nothing changes."""
    options = [word for word in words if "=" in word]
    labels = names_of(words)
    for label in labels:
        stage.observe(stream(stage, [label, *options]))
    for _ in range(_ROUNDS):
        for label in labels:
            stage.observe(stream(stage, [label.partition(":")[0], "active=all"]))


def _topology(options: Words, *, is_joining: bool) -> Json | None:
    word = options.get("topics", "foo" if is_joining else "-")
    if word == "-":
        return None
    topics = [] if word == "none" else word.split(",")
    return bodies.topology(int(options.get("epoch", "0")), topics)


def streams(stage: Stage, words: list[str]) -> Outcome:
    """`streams [g1 g2]`: a StreamsGroupDescribe of the script's group, or of others."""
    _need_groups(stage)
    options = options_of(words)
    data = bodies.describe_new_groups(names_of(words) or [stage.group])
    version = stage.version("StreamsGroupDescribe", _VERSION, options, most=_VERSION)
    return stage.call("streams", "StreamsGroupDescribe", version, data, options)


def _need_groups(stage: Stage) -> None:
    """Continue only if the broker of the script has streams groups.

    Raises:
        Unsupported: it does not.
    """
    stage.ready()
    stage.need(Capability.STREAMS_GROUPS)
    stage.learn_topics()
