"""A disk that is full or broken: what was refused is not there, what was there stays."""

import errno
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_sim.disk.file_store import FileStore
from coordinator_sim.log.contract import SegmentSettings
from tests.faulty_files import Fault, FaultyFiles
from tests.unit.disk.segment_worlds import contents, encoded, opened, put, span

KIBIBYTE = 1024


def filled(folder: Path, files: FaultyFiles | None = None) -> FileStore:
    """A store with five batches."""
    store, _ = opened(folder, files=files)
    for offset in range(5):
        put(store, offset)
    return store


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("short", [0, 1, 40, 80])
def test_a_refused_write_leaves_no_trace(tmp_path: Path, number: int, short: int) -> None:
    """The append raises, nothing of it is read, and the next one follows what was there."""
    files = FaultyFiles()
    store = filled(tmp_path / "t-0", files)
    before = contents(store)
    files.faults.append(Fault(verb="write", errno=number, short=short, path="/t-0/"))
    with pytest.raises(OSError, match=r"\[Errno") as raised:
        put(store, 5)
    assert raised.value.errno == number
    assert contents(store) == before
    assert store.segments()[-1].next_offset == 5
    put(store, 5)
    again, recovery = opened(tmp_path / "t-0", is_clean=False)
    assert recovery.cuts == []
    assert again.segments()[-1].next_offset == 6


def test_what_cannot_be_cut_off_is_written_over(tmp_path: Path) -> None:
    """A failed write whose rest stays in the file does no harm, to readers nor to a recovery."""
    files = FaultyFiles()
    store = filled(tmp_path / "t-0", files)
    before = contents(store)
    files.faults += [
        Fault(verb="write", errno=errno.EIO, short=60),
        Fault(verb="truncate", errno=errno.EIO),
    ]
    with pytest.raises(OSError, match="Input/output"):
        store.append(encoded(5, 3, 9, size=300), (span(5, 3, 9),), 9)
    assert contents(store) == before
    again, recovery = opened(tmp_path / "t-0", is_clean=False)
    assert [cut.cut_bytes for cut in recovery.cuts] == [60]
    assert contents(again) == before
    put(store, 5)
    assert opened(tmp_path / "t-0", is_clean=False)[1].cuts == []


def test_a_flush_that_fails_acknowledges_nothing(tmp_path: Path) -> None:
    """With a flush at each append, one that the medium refuses takes the append back."""
    files = FaultyFiles()
    store, _ = opened(tmp_path / "t-0", SegmentSettings(flush_messages=1), files=files)
    put(store, 0)
    files.faults.append(Fault(verb="sync", errno=errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        put(store, 1)
    assert contents(store) == encoded(0, 1, 1_700_000_000_000)
    put(store, 1)
    assert (store.segments()[-1].next_offset, store.flushed_offset) == (2, 2)


def test_flush_messages_are_counted(tmp_path: Path) -> None:
    """The append that completes the count is flushed with all before it."""
    store, _ = opened(tmp_path / "t-0", SegmentSettings(flush_messages=5, segment_bytes=200))
    flushed = [(put(store, offset), store.flushed_offset)[1] for offset in range(11)]
    assert flushed == [0, 0, 0, 0, 5, 5, 5, 5, 5, 10, 10]


def test_a_segment_that_cannot_be_made_keeps_the_old_one(tmp_path: Path) -> None:
    """Where rolling fails nothing has changed; later it succeeds."""
    files = FaultyFiles()
    store = filled(tmp_path / "t-0", files)
    files.faults.append(Fault(verb="open", errno=errno.ENOSPC, path=f"{5:020d}.log"))
    with pytest.raises(OSError, match="No space"):
        store.roll(5)
    assert len(store.segments()) == 1
    store.roll(5)
    put(store, 5)
    assert [info.base_offset for info in store.segments()] == [0, 5]


def test_a_limit_of_the_file_size_is_a_refusal_too(tmp_path: Path) -> None:
    """A file that may not grow takes a part of a batch: the part goes."""
    store = filled(tmp_path / "t-0")
    before = contents(store)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            store.append(encoded(5, 3, 9, size=300), (span(5, 3, 9),), 9)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / "t-0" / f"{0:020d}.log").read_bytes() == before
    put(store, 5)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={256 * KIBIBYTE}", "none", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:  # noqa: PLW1510
        pytest.skip("mounting a small file system is not permitted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_loses_nothing_that_was_taken(small_disk: Path) -> None:
    """Appends that returned are there, and when there is room others follow them."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100 * KIBIBYTE))
    store, _ = opened(small_disk / "t-0", SegmentSettings(segment_bytes=30_000))
    taken = b""
    offset = 0
    refusals = []
    while len(refusals) < 3:
        data = encoded(offset, 2, 9, size=700)
        try:
            store.append(data, (span(offset, 2, 9),), 9)
        except OSError as error:
            refusals.append(error.errno)
        else:
            taken += data
            offset += 2
    assert refusals == [errno.ENOSPC] * 3
    assert offset > 100
    assert contents(store) == taken
    ballast.unlink()
    store.append(data, (span(offset, 2, 9),), 9)
    again, recovery = opened(small_disk / "t-0", is_clean=False)
    assert (recovery.cuts, contents(again)) == ([], taken + data)
