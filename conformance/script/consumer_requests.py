"""Script commands of consumer groups (KIP-848): heartbeats, descriptions.

Each takes the words after its name; its docstring shows its form in a script. Partitions and
epochs are written as in `consumer_answers`.
"""

from typing import Final

from coordinator_sim_conformance.requirements import family_of
from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.consumer_blobs import partitions_of
from coordinator_sim_conformance.script.stage import Actor, Stage
from coordinator_sim_conformance.targets.target import Capability, Outcome

_REBALANCE_TIMEOUT_MS: Final = 5_000
_BLANK: Final = "  "
_ROUNDS: Final = 3
"""Heartbeats in which a member hears of its target, gives up what it must, and gets the rest."""


def beat(stage: Stage, words: list[str]) -> Outcome:
    """`beat A [full] [e= own= names= regex= rebalance= assignor= rack= i= id= v= on=]`.

    A member joins at first, and later repeats the epoch it was told; it says all that there is to
    say when it joins or with `full`, else what the command names. `own=all` reports what it was
    told to have. `-` is null, `none` empty, `blank` a name of spaces.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    if family_of(stage.profile) == "J":
        _need_groups(stage)
    epoch = stage.number(options.get("e", str(max(actor.generation_id, 0))))
    says_all = epoch == 0 or "full" in names_of(words)
    version = stage.version("ConsumerGroupHeartbeat", 1, options)
    if "regex" in options:
        version = 1
    data = bodies.consumer_group_heartbeat(
        version,
        bodies.Identity(
            group_id=stage.group,
            member_id=_text(options.get("id", actor.member_id or words[0].partition(":")[0])) or "",
            instance_id=_text(options["i"]) if "i" in options else actor.instance_id,
            generation_id=epoch,
        ),
        subscription=(_names(actor, options, says_all=says_all), _text(options.get("regex", "-"))),
        owned=_owned(stage, actor, options, epoch, says_all=says_all),
        rebalance_timeout_ms=_timeout(options, says_all=says_all),
        wishes=(_text(options.get("rack", "-")), _text(options.get("assignor", "-"))),
    )
    return stage.call(words[0], "ConsumerGroupHeartbeat", version, data, options)


def _need_groups(stage: Stage) -> None:
    """Continue only if the broker of the script has consumer groups and tells ids of topics.

    Raises:
        Unsupported: it does not.
    """
    stage.ready()
    stage.need(Capability.CONSUMER_GROUPS)
    stage.learn_topics()


def _text(word: str) -> str | None:
    if word == "-":
        return None
    return {"none": "", "blank": _BLANK}.get(word, word)


def _timeout(options: Words, *, says_all: bool) -> int:
    return int(options.get("rebalance", _REBALANCE_TIMEOUT_MS if says_all else -1))


def _names(actor: Actor, options: Words, *, says_all: bool) -> list[str] | None:
    """Return the topics that a member names: its own wherever it says all but an expression."""
    if "names" in options:
        word = options["names"]
        if word == "-":
            return None
        actor.names = () if word == "none" else tuple(word.split(","))
        return list(actor.names)
    return list(actor.names) if says_all and "regex" not in options else None


def _owned(
    stage: Stage, actor: Actor, options: Words, epoch: int, *, says_all: bool
) -> dict[str, list[int]] | None:
    """Return the partitions that a member reports: none when it joins."""
    word = options.get("own", "none" if epoch == 0 else "all" if says_all else "-")
    if word == "-":
        return None
    found = partitions_of(actor.holds if word == "all" else word)
    return {stage.topic_id(topic): partitions for topic, partitions in found.items()}


def settled(stage: Stage, words: list[str]) -> None:
    """`settled A B:i2 [names= assignor=]`: members join, and heartbeat until nothing changes."""
    options = [word for word in words if "=" in word]
    stage.ready()
    labels = names_of(words)
    for label in labels:
        stage.observe(beat(stage, [label, *options]))
    for _ in range(_ROUNDS):
        for label in labels:
            stage.observe(beat(stage, [label.partition(":")[0], "own=all"]))


def inspect(stage: Stage, words: list[str]) -> Outcome:
    """`inspect [g1 g2] [v=1]`: a ConsumerGroupDescribe of the script's group, or of others."""
    _need_groups(stage)
    options = options_of(words)
    version = stage.version("ConsumerGroupDescribe", 1, options)
    data = bodies.describe_new_groups(names_of(words) or [stage.group])
    return stage.call("inspect", "ConsumerGroupDescribe", version, data, options)
