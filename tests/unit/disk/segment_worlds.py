"""Batches and operations for stores, drawn from a seed, and the same done to two stores."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from coordinator_sim.disk.file_store import FileStore
from coordinator_sim.disk.files import Files, OpenFiles
from coordinator_sim.disk.partition_folder import FolderRecovery, Opening, open_store
from coordinator_sim.log.contract import SegmentSettings, SegmentStore, StoredSpan
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.memory_store import MemoryStore

SETTINGS = SegmentSettings(segment_bytes=3_000, index_interval_bytes=200)
START_MS = 1_700_000_000_000


def encoded(offset: int, count: int, at_ms: int, *, size: int = 20, epoch: int = 3) -> bytes:
    """A batch of records with values of one size."""
    records = tuple(
        Record(offset=offset + index, timestamp_ms=at_ms + index, key=b"k", value=bytes(size))
        for index in range(count)
    )
    return encode_record_batch(batch_of(records, leader_epoch=epoch))


def span(offset: int, count: int, at_ms: int, *, epoch: int = 3) -> StoredSpan:
    """What a store is told of that batch."""
    return StoredSpan(
        base_offset=offset,
        last_offset=offset + count - 1,
        max_timestamp_ms=at_ms + count - 1,
        leader_epoch=epoch,
    )


def put(store: SegmentStore, offset: int, count: int = 1, at_ms: int = START_MS) -> int:
    """Append one batch; the offset after it."""
    store.append(encoded(offset, count, at_ms), (span(offset, count, at_ms),), at_ms)
    return offset + count


def opened(
    folder: Path, settings: SegmentSettings = SETTINGS, *, files: Files | None = None, **how: object
) -> tuple[FileStore, FolderRecovery]:
    """The store of a folder; `how` as in `Opening`."""
    opening = Opening(folder=str(folder), settings=settings, **how)  # type: ignore[arg-type]
    return open_store(opening, OpenFiles(files or Files(), limit=3))


def contents(store: SegmentStore) -> bytes:
    """All batches, read one after another."""
    parts = []
    offset = 0
    end = store.segments()[-1].next_offset
    while data := store.read(offset, 1, before_offset=end):
        parts.append(data)
        offset = int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big") + 1
    return b"".join(parts)


class World:
    """One store in files and one in memory that hear the same."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)  # noqa: S311 - tests
        self.folder = folder
        self.memory = MemoryStore(settings=SETTINGS)
        self.file, _ = opened(folder)
        self.now_ms = START_MS
        self.end = 0

    def both(self) -> Sequence[SegmentStore]:
        """The two stores."""
        return (self.memory, self.file)

    def step(self) -> None:
        """One operation, appends most often."""
        verbs = (self.append,) * 12 + (self.truncate, self.drop, self.clean, self.roll, self.reopen)
        self.random.choice(verbs)()

    def append(self) -> None:
        """One to three batches, now and then with a gap or older timestamps."""
        offset = self.end + (self.random.randrange(3) == 0) * self.random.randrange(5)
        data, spans = b"", []
        for _ in range(self.random.randrange(1, 4)):
            self.now_ms += self.random.randrange(-30, 100)
            count, size = self.random.randrange(1, 5), self.random.choice((3, 40, 400))
            data += encoded(offset, count, self.now_ms, size=size)
            spans.append(span(offset, count, self.now_ms))
            offset += count
        assert len({store.append(data, spans, self.now_ms) for store in self.both()}) == 1
        self.end = offset

    def truncate(self) -> None:
        """Cut the end off, seldom all of it."""
        first = self.memory.segments()[0].base_offset
        low = first if self.random.randrange(5) == 0 else max(first, self.end - 20)
        offset = self.random.randrange(low, self.end + 1)
        for store in self.both():
            store.truncate_to(offset)
        self.end = self.memory.segments()[-1].next_offset

    def drop(self) -> None:
        """Let the oldest segments go."""
        offset = self.random.choice(self.memory.segments()).base_offset
        for store in self.both():
            store.drop_before(offset)

    def roll(self) -> None:
        """Begin a segment."""
        for store in self.both():
            store.roll(self.end)

    def clean(self) -> None:
        """Put two segments together, without some of their batches."""
        bases = [info.base_offset for info in self.memory.segments()[:-1]][:2]
        if not bases:
            return
        data, spans = b"", []
        offset = bases[0]
        end = self.memory.segments()[len(bases)].base_offset
        while offset < end and (batch := self.memory.read(offset, 1, before_offset=end)):
            base = int.from_bytes(batch[:8], "big")
            count = int.from_bytes(batch[23:27], "big") + 1
            if self.random.randrange(2):
                data += batch
                newest_ms = int.from_bytes(batch[35:43], "big")
                spans.append(span(base, count, newest_ms - count + 1))
            offset = base + count
        for store in self.both():
            store.replace(bases, data, spans)

    def reopen(self) -> None:
        """Close the files in order, or leave them as a killed process does."""
        clean = self.random.randrange(2) == 0
        if clean:
            self.file.close()
        self.file, recovery = opened(self.folder, is_clean=clean)
        assert recovery.cuts == []

    def check(self) -> None:
        """Both stores answer the same."""
        memory, file = self.both()
        assert contents(file) == contents(memory)
        seen = [[(i.base_offset, i.size_bytes) for i in s.segments()] for s in (memory, file)]
        assert seen[0] == seen[1]
        assert memory.segments()[-1] == file.segments()[-1]
        for _ in range(5):
            offset = self.random.randrange(self.end + 1)
            before = self.random.randrange(offset, self.end + 1)
            size = self.random.choice((1, 300, 5_000))
            read = [store.read(offset, size, before_offset=before) for store in (memory, file)]
            assert read[0] == read[1]
            at_ms = self.now_ms - self.random.randrange(-100, 3_000)
            found = [s.first_at_or_after(at_ms, from_offset=offset) for s in (memory, file)]
            assert found[0] == found[1]


class Dead(Exception):
    """The process ended here."""


class MortalFiles(Files):
    """A file system whose process dies before its n-th change.

    Args:
        changes: That still happen.
    """

    def __init__(self, changes: int) -> None:
        super().__init__()
        self.changes = changes

    def _live(self) -> None:
        if self.changes == 0:
            raise Dead
        self.changes -= 1

    def write(self, fd: int, data: bytes | memoryview, position: int) -> int:
        """Do what `Files.write` does."""
        self._live()
        return super().write(fd, data, position)

    def truncate(self, fd: int, size: int) -> None:
        """Do what `Files.truncate` does."""
        self._live()
        super().truncate(fd, size)

    def rename(self, path: str, new: str) -> None:
        """Do what `Files.rename` does."""
        self._live()
        super().rename(path, new)

    def remove(self, path: str) -> None:
        """Do what `Files.remove` does."""
        self._live()
        super().remove(path)
