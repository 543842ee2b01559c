"""The journal: every entry whose append returned is there again, whatever became of the last."""

import errno
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.msgpack import Decoder

from coordinator_sim.disk.files import Files
from coordinator_sim.disk.journal import Journal
from coordinator_sim.errors import DataError
from tests.faulty_files import Fault, FaultyFiles


class Set(Struct, frozen=True, tag=True):
    """A name has a value."""

    name: str
    value: int


class Gone(Struct, frozen=True, tag=True):
    """A name has none."""

    name: str


class New(Struct, frozen=True, tag=True):
    """What only a newer version writes."""

    name: str


Entry = Set | Gone


def journal(folder: Path, files: Files | None = None) -> tuple[Journal[Entry], list[Entry]]:
    """The journal in a folder, and what it holds."""
    opened = Journal(f"{folder}/metadata.log", Decoder(Entry), files or Files())
    entries = opened.read()
    opened.begin()
    return opened, entries


ENTRIES: list[Entry] = [Set("a", 1), Gone("a"), Set("b", 2**40)]


def written(folder: Path) -> bytes:
    """A journal of those entries, as bytes."""
    opened, found = journal(folder)
    assert found == []
    for entry in ENTRIES:
        opened.append(entry)
    opened.close()
    return (folder / "metadata.log").read_bytes()


def test_entries_come_back_in_order(tmp_path: Path) -> None:
    """What was appended is read again, and more may follow."""
    written(tmp_path)
    opened, found = journal(tmp_path)
    assert found == ENTRIES
    assert opened.damage is None
    opened.append(Gone("b"))
    opened.close()
    assert journal(tmp_path)[1] == [*ENTRIES, Gone("b")]


def test_every_torn_tail_is_cut_at_its_frame(tmp_path: Path) -> None:
    """A file that ends at any byte opens with the whole frames before it, and can grow again."""
    data = written(tmp_path)
    file = tmp_path / "metadata.log"
    ends = []
    for size in range(len(data) + 1):
        file.write_bytes(data[:size])
        opened, found = journal(tmp_path)
        assert found == ENTRIES[: len(found)]
        assert (opened.damage is None) == (size >= 8 and file.stat().st_size == size)
        opened.append(Gone("more"))
        opened.close()
        assert journal(tmp_path)[1] == [*found, Gone("more")]
        ends.append(len(found))
    assert ends == sorted(ends)
    assert ends[-1] == 3


def test_every_flipped_byte_of_the_last_frame_is_noticed(tmp_path: Path) -> None:
    """Damage in the last frame costs that frame alone."""
    data = written(tmp_path)
    file = tmp_path / "metadata.log"
    last = data.rindex(b"\xa4type") - 9
    for position in range(last, len(data)):
        file.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        opened, found = journal(tmp_path)
        assert found == ENTRIES[:2]
        assert opened.damage is not None
        opened.close()


@pytest.mark.parametrize("short", [0, 1, 7, 8, 9, 20])
def test_a_refused_write_leaves_no_trace(tmp_path: Path, short: int) -> None:
    """An append that the disk refuses raises, and what went of it is not read."""
    files = FaultyFiles()
    opened, _ = journal(tmp_path, files)
    opened.append(ENTRIES[0])
    files.faults.append(Fault(verb="write", errno=errno.ENOSPC, short=short))
    with pytest.raises(OSError, match="No space left"):
        opened.append(ENTRIES[1])
    opened.append(ENTRIES[2])
    opened.close()
    assert journal(tmp_path)[1] == [ENTRIES[0], ENTRIES[2]]


def test_rewriting_keeps_what_it_is_given(tmp_path: Path) -> None:
    """A journal that has grown is replaced by a shorter one, in one step."""
    opened, _ = journal(tmp_path)
    for number in range(40_000):
        opened.append(Set("counter", number))
    assert opened.is_grown
    opened.rewrite([Set("counter", 39_999)])
    assert not opened.is_grown
    opened.append(Gone("counter"))
    opened.close()
    assert journal(tmp_path)[1] == [Set("counter", 39_999), Gone("counter")]


def test_entries_of_a_newer_version_are_refused_not_cut(tmp_path: Path) -> None:
    """An entry that is whole but unknown is no damage: nothing is cut, opening is refused."""
    written(tmp_path)
    newer = Journal(f"{tmp_path}/metadata.log", Decoder(New), Files())
    with pytest.raises(DataError, match="does not know"):
        newer.read()
    newer.append(New("c"))
    newer.close()
    size = (tmp_path / "metadata.log").stat().st_size
    with pytest.raises(DataError, match="does not know"):
        journal(tmp_path)
    assert (tmp_path / "metadata.log").stat().st_size == size


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    """What does not begin as a journal is left alone until somebody begins one, and kept then."""
    file = tmp_path / "metadata.log"
    file.write_bytes(b"something else entirely")
    opened = Journal(str(file), Decoder(Entry), Files())
    assert opened.read() == []
    assert opened.damage is not None
    assert "no journal begins with b'somethin'" in opened.damage.reason
    assert file.read_bytes() == b"something else entirely"
    cut = opened.begin()
    opened.append(Gone("a"))
    opened.close()
    assert journal(tmp_path)[1] == [Gone("a")]
    assert cut is not None
    assert Path(cut.kept_as).read_bytes() == b"something else entirely"


def test_a_damaged_beginning_costs_no_entry(tmp_path: Path) -> None:
    """Each entry has its own checksum: with a wrong byte before the first all are there."""
    data = written(tmp_path)
    for position in (0, 3, 7):
        (tmp_path / "metadata.log").write_bytes(
            bytes(data[:position] + b"\xff" + data[position + 1 :])
        )
        assert journal(tmp_path)[1] == ENTRIES
        assert (tmp_path / "metadata.log").read_bytes() == data


def test_a_cut_before_good_frames_is_not_torn(tmp_path: Path) -> None:
    """Only the last frame can be half written; a wrong length with more behind it is damage."""
    data = written(tmp_path)
    (tmp_path / "metadata.log").write_bytes(data[:8] + b"\x03" + data[9:])
    opened = Journal(f"{tmp_path}/metadata.log", Decoder(Entry), Files())
    assert opened.read() == []
    assert opened.damage is not None
    assert not opened.damage.is_torn
    (tmp_path / "metadata.log").write_bytes(data[:-1])
    opened = Journal(f"{tmp_path}/metadata.log", Decoder(Entry), Files())
    assert opened.read() == ENTRIES[:-1]
    assert opened.damage is not None
    assert opened.damage.is_torn


def test_a_journal_rewritten_goes_on_after_it_could_not_be_opened(tmp_path: Path) -> None:
    """An append that finds no file descriptor raises; those after it lose nothing."""
    files = FaultyFiles()
    opened, _ = journal(tmp_path, files)
    for number in range(100):
        opened.append(Set("counter", number))
    opened.rewrite([Set("counter", 99)])
    files.faults.append(Fault(verb="open", errno=errno.EMFILE))
    with pytest.raises(OSError, match="Too many open files"):
        opened.append(Gone("a"))
    opened.append(Gone("counter"))
    opened.close()
    assert journal(tmp_path, files)[1] == [Set("counter", 99), Gone("counter")]
