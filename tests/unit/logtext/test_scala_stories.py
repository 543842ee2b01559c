"""What Scala coordinators log of timers that outlive their group, of loads and of late orders."""

import re

import pytest

from tests.unit.logtext.tour import NEW, OLD, Tour

SCALA = pytest.mark.parametrize("profile", ["2.8", "3.9"])


def said(world: Tour, words: str) -> list[str]:
    """The messages with these words, without time, level, prefix and logger."""
    bare = re.compile(r"\[.{23}\] [A-Z]+ (?:\[Group[^\]]*\]:? )?(.*) \(\S+\)")
    found = [bare.fullmatch(line) for line in world.lines()]
    return [match[1] for match in found if match is not None and words in match[1]]


def stable(profile: str) -> tuple[Tour, str]:
    """A group of one member at generation 1."""
    world = Tour(profile)
    member = world.join(version=OLD)
    world.advance(3_000)
    world.sync(member, 1, member)
    return world, member


@SCALA
def test_an_id_that_left_is_removed_once_more(profile: str) -> None:
    """The timer of an id that was handed out runs on when the id leaves before it joins."""
    world, _ = stable(profile)
    pending = world.join(version=NEW)
    world.leave(pending)
    world.advance(29_999)
    assert said(world, "after session timeout") == []
    world.advance(1)
    assert said(world, "after session timeout") == [
        f"Pending member {pending} in group g has been removed after session timeout expiration."
    ]


@SCALA
def test_sessions_of_an_unloaded_group_end_in_a_line_each(profile: str) -> None:
    """Nobody is left to fail, and the coordinator says so, of members and of handed-out ids."""
    world, member = stable(profile)
    pending = world.join(version=NEW)
    world.take(world.harness.resign(0, 2))
    world.advance(30_000)
    after = "after group g had already been unloaded or deleted."
    assert said(world, "Received notification") == [
        f"Received notification of heartbeat expiration for member {name} {after}"
        for name in (member, pending)
    ]


@SCALA
def test_a_session_that_is_loaded_again_is_not_told_of(profile: str) -> None:
    """The load calls off the old timer under the same group and member."""
    world, member = stable(profile)
    world.take(world.harness.resign(0, 2))
    world.take(world.harness.elect(0, 3))
    world.advance(29_999)
    world.heartbeat(member, 1)
    world.advance(29_999)
    assert said(world, "Received notification") == []


@SCALA
def test_every_stored_record_names_its_members(profile: str) -> None:
    """A load tells of the members in the order of the log, older generations included."""
    world, member = stable(profile)
    world.join(member, protocols="range,other")
    world.sync(member, 2, member)
    world.take(world.harness.resign(0, 2))
    world.take(world.harness.elect(0, 3))
    loaded = said(world, "Loaded member")
    assert [line.rsplit(" ", 1)[1] for line in loaded] == ["1.", "2."]
    assert all(f"memberId={member}, groupInstanceId=None" in line for line in loaded)


@SCALA
def test_a_repeated_resignation_finds_nothing(profile: str) -> None:
    """The resignation is scheduled and finished again; one of an older epoch is refused."""
    world, _ = stable(profile)
    for epoch in (2, 2, 1):
        world.take(world.harness.resign(0, epoch))
    removed = [line.rsplit(". ", 1)[1] for line in said(world, "Finished unloading")]
    assert removed == [
        "Removed 0 cached offsets and 1 cached groups.",
        "Removed 0 cached offsets and 0 cached groups.",
    ]
    assert len(said(world, "Resigned as the group coordinator")) == 3
    (refused,) = said(world, "Not removing")
    assert refused.endswith("since current epoch is 2")


@SCALA
def test_offsets_of_deleted_topics_are_counted(profile: str) -> None:
    """One line for all groups, with every partition of the topic."""
    world = Tour(profile)
    world.harness.set_topic("t", 2)
    world.commit("one")
    world.commit("two")
    world.take(world.harness.remove_topics(["t"]))
    assert said(world, "deleted partitions") == [
        "Removed 2 offsets associated with deleted partitions: t-0, t-1."
    ]
