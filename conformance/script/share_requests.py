"""Script commands of share groups (KIP-932): heartbeats.

Each takes the words after its name; its docstring shows its form in a script. Partitions and
epochs are written as in `consumer_answers`.
"""

from typing import Final

from coordinator_sim_conformance.script import bodies
from coordinator_sim_conformance.script.comparing import options_of
from coordinator_sim_conformance.script.stage import Stage
from coordinator_sim_conformance.targets.target import Capability, Outcome

_VERSION: Final = 1
"""The first stable version, and the only one."""


def share(stage: Stage, words: list[str]) -> Outcome:
    """`share A [e= names= id= on=]`: a ShareGroupHeartbeat.

    A member joins at first, and later repeats the epoch it was told. `-` is null, `none` empty.
    """
    options = options_of(words[1:])
    actor = stage.actor(words[0])
    stage.ready()
    stage.need(Capability.SHARE_GROUPS)
    stage.learn_topics()
    epoch = stage.number(options.get("e", str(max(actor.generation_id, 0))))
    word = options.get("names", ",".join(actor.names) if epoch == 0 else "-")
    names = None if word == "-" else [] if word == "none" else word.split(",")
    data = bodies.share_group_heartbeat(
        bodies.Identity(
            group_id=stage.group,
            member_id=options.get("id", actor.member_id or words[0]),
            generation_id=epoch,
        ),
        names,
    )
    version = stage.version("ShareGroupHeartbeat", _VERSION, options)
    return stage.call(words[0], "ShareGroupHeartbeat", version, data, options)
