"""Script commands of share groups (KIP-932): heartbeats and descriptions.

Each takes the words after its name; its docstring shows its form in a script. Partitions and
epochs are written as in `consumer_answers`.
"""

from typing import Final

from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.comparing import names_of, options_of
from coordinator_sim_conformance.script.stage import Stage
from coordinator_sim_conformance.targets.target import Capability, Outcome

_VERSION: Final = 1
"""The first stable version, and the only one."""
_TEXTS: Final = {"none": "", "blank": " "}


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


def _need_groups(stage: Stage) -> None:
    """Continue only if the broker of the script has share groups and tells ids of topics.

    Raises:
        Unsupported: it does not.
    """
    stage.ready()
    stage.need(Capability.SHARE_GROUPS)
    stage.learn_topics()
