"""The hash table of keys: never a wrong number, also where hashes are equal on purpose."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from coordinator_sim.log.columns.batch_scan import PADDING
from coordinator_sim.log.columns.compiled import LOAD_AFTER, LOOPS
from coordinator_sim.log.columns.key_table import MISSING, KeyTable, WordTable
from coordinator_sim.log.format.offsets_records import encode_key
from coordinator_sim.messages.group_records import OffsetCommitKey

SEED = 0x9E3779B97F4A7C15
WRAP = 2**64


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def _loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each story with both kinds of loops."""
    if request.param == "compiled":
        pytest.importorskip("numba", reason="the extra `fast` is not installed")
        LOOPS.load_after(0)
        LOOPS.count(0)
    yield
    LOOPS.load_after(LOAD_AFTER)


def laid_out(strings: list[bytes]) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Strings one after another, with their starts and sizes."""
    sizes = np.array([len(one) for one in strings], np.int64)
    return b"".join(strings) + PADDING, np.cumsum(sizes) - sizes, sizes


def of_one_hash(count: int) -> list[bytes]:
    """Strings of two words whose weighted sum is the same."""
    first, second = pow(SEED, 1, WRAP), pow(SEED, 3, WRAP)
    inverse = pow(first, -1, WRAP)
    return [
        ((1 - word * second) * inverse % WRAP).to_bytes(8, "little") + word.to_bytes(8, "little")
        for word in range(1, count + 1)
    ]


@pytest.mark.parametrize("width", [64, 128, 256])
def test_what_was_added_is_found_and_nothing_else(width: int) -> None:
    """Through many doublings; a string that only begins or ends differently is another."""
    chance = random.Random(width)  # noqa: S311 - draws test data
    drawn = [chance.randbytes(chance.randint(1, width)) for _ in range(20_000)]
    strings = list(dict.fromkeys(drawn))
    table = WordTable(width)
    for start in range(0, len(strings), 3_000):
        content, starts, sizes = laid_out(strings[start : start + 3_000])
        table.add(content, starts, sizes, np.arange(start, start + len(starts)))

    content, starts, sizes = laid_out(strings)
    others, other_starts, other_sizes = laid_out([one[:-1] + b"\xab\xcd" for one in strings[:99]])

    found = table.find(content, starts, sizes)
    assert np.mean(found == np.arange(len(strings))) > 0.99
    assert set(found[found != np.arange(len(strings))].tolist()) <= {MISSING}
    fits = other_sizes <= width
    assert set(table.find(others, other_starts[fits], other_sizes[fits]).tolist()) == {MISSING}


def test_strings_of_one_hash_are_never_taken_for_each_other() -> None:
    """One of them may be found; the others are left to the dictionary beside the table."""
    strings = of_one_hash(200)
    content, starts, sizes = laid_out(strings)
    table = WordTable(64)
    table.add(content, starts, sizes, np.arange(len(strings)))

    found = table.find(content, starts, sizes)

    rows = np.flatnonzero(found != MISSING)
    assert len(rows) == 1
    assert found[rows].tolist() == rows.tolist()


def test_keys_of_every_length_have_their_number() -> None:
    """Also those that are longer than any table takes, and both versions of a key have the same."""
    keys = [OffsetCommitKey("g" * size, "t", size) for size in (0, 40, 60, 100, 200, 300, 5_000)]
    raw = [encode_key(key) for key in keys] + [encode_key(key, legacy=True) for key in keys]
    table = KeyTable()

    for _ in range(2):
        numbers = table.numbers_of(*laid_out(raw))
        assert numbers.tolist() == [*range(len(keys)), *range(len(keys))]
    assert table.keys == keys
