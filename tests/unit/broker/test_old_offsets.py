"""Offsets of version 0: as real brokers keep them in their ZooKeeper, and across processes.

`tests/data/old_offsets` is recorded by `tools.record_old_offsets`.
"""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.metadata.changes import OffsetNodeWritten
from coordinator_sim.broker.metadata.image import changes_of
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.real_kafka.old_offsets import Question, answered, commit, fetch
from tests.faulty_files import Fault
from tests.unit.broker.fields_client import FieldsClient
from tests.unit.broker.kept_world import SETTINGS, KeptWorld
from tools.record_old_offsets import FOLDER, NODE

RECORDED = {"0.10.2": "0.10.2.2", "2.8": "2.8.2", "3.9": "3.9.2"}
"""For each profile the broker that was recorded; the last one has no ZooKeeper."""


def _recorded(profile: str) -> list[list[Any]]:
    text = (FOLDER / f"kafka-{RECORDED[profile]}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _cluster(profile: str) -> Cluster:
    settings = ClusterSettings(
        profile=profile_named(profile), given={"delete.topic.enable": "true"}
    )
    return Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))


@pytest.mark.parametrize("profile", RECORDED)
def test_offsets_of_version_0_are_kept_as_at_a_real_broker(profile: str) -> None:
    """Every answer in its order, and every node with its data."""
    cluster = _cluster(profile)
    ours = [json.loads(line) for line in answered(FieldsClient(cluster))]
    nodes = cluster.image.offset_nodes.items()
    ours += sorted([NODE, path, data] for path, data in nodes if data is not None)
    theirs = _recorded(profile)
    kept = [line for line in theirs if line[0] == NODE]
    theirs = [line for line in theirs if line[0] != NODE] + sorted(kept)
    assert [(a, b) for a, b in zip(ours, theirs, strict=False) if a != b] == []
    assert len(ours) == len(theirs)


def _offset_of(world: KeptWorld, question: Question) -> Any:  # noqa: ANN401 - a field
    """The only partition of an answer."""
    answer = world.call(question.api, question.version, question.fields)
    return answer["topics"][0]["partitions"][0]


def _world(path: Path) -> KeptWorld:
    world = KeptWorld(path, settings=structs.replace(SETTINGS, profile=profile_named("0.10.2")))
    assert world.create("t", version=1) is ErrorCode.NONE
    return world


def test_what_was_acknowledged_outlives_the_process(tmp_path: Path) -> None:
    """A killed process, one that left, and a journal that was written anew meanwhile."""
    world = _world(tmp_path)
    place = ("t", 0)
    for offset in (5, 7):
        assert _offset_of(world, commit("", 0, "g", (place, offset)))["errorCode"] == ErrorCode.NONE

    world.kill()
    assert _offset_of(world, fetch("", 0, "g", place))["committedOffset"] == 7
    world.leave()
    assert _offset_of(world, fetch("", 0, "g", place))["committedOffset"] == 7
    changes = list(changes_of(world.cluster.image))
    assert OffsetNodeWritten("/consumers/g/offsets/t/0", "7") in changes
    assert _offset_of(world, fetch("", 1, "g", place))["committedOffset"] == -1


def test_what_the_journal_cannot_take_is_refused(tmp_path: Path) -> None:
    """A commit that cannot be kept is UNKNOWN_SERVER_ERROR, and the offset before it stays."""
    world = _world(tmp_path)
    place = ("t", 0)
    _offset_of(world, commit("", 0, "g", (place, 5)))
    world.files.faults.append(Fault(verb="write", errno=errno.ENOSPC))

    refused = _offset_of(world, commit("", 0, "g", (place, 6)))

    assert refused["errorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "/consumers/g/offsets/t/0" in world.troubles[-1]
    assert _offset_of(world, fetch("", 0, "g", place))["committedOffset"] == 5


def test_a_commit_changes_nothing_that_brokers_know(tmp_path: Path) -> None:
    """What is kept by the version of the metadata stays as it is."""
    world = _world(tmp_path)
    version = world.cluster.image.version
    _offset_of(world, commit("", 0, "g", (("t", 0), 5)))
    assert world.cluster.image.version == version
