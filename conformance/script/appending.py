"""Records of another leader, as bytes, which a script puts into a log for a later election."""

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
from coordinator_sim_conformance.script.answers import Words
from coordinator_sim_conformance.script.bodies import text
from coordinator_sim_conformance.script.comparing import options_of
from coordinator_sim_conformance.script.stage import Stage
from coordinator_sim_conformance.targets.target import Json

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
