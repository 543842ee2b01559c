"""Offsets as applied and as committed."""

from coordinator_sim.coordinator.offset_store import OffsetStore
from coordinator_sim.protocol.records import OffsetCommitKey, OffsetCommitValue

KEY = OffsetCommitKey("g", "t", 0)


def test_removed_offset_is_seen_until_its_tombstone_is_committed() -> None:
    """A reader below the tombstone's position still sees the value."""
    store = OffsetStore()
    store.put(KEY, OffsetCommitValue(offset=1), 0)
    store.remove(KEY, 5)
    before = store.get(KEY, 4)
    assert before is not None
    assert before.offset == 1
    assert store.get(KEY, 5) is None


def test_removing_what_is_not_there_changes_nothing() -> None:
    """A tombstone of an unknown offset leaves no trace."""
    store = OffsetStore()
    store.remove(KEY, 5)
    assert store.get(KEY, 4) is None
    assert list(store.all_of("g", 9)) == []
