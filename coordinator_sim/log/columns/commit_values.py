"""Values of offset commits as columns, versions 0 to 4.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message/OffsetCommitValue.json.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from coordinator_sim.log.columns.batch_scan import Flags, Ints, gathered
from coordinator_sim.log.columns.commit_columns import Texts
from coordinator_sim.log.columns.compiled import LOOPS
from coordinator_sim.log.format.offsets_records import HIGHEST_VALUE_VERSION

_OFFSET_AT: Final = 2
_EPOCH_AT: Final = 10
_EPOCH_VERSION: Final = 3
_EXPIRE_VERSION: Final = 1
_FLEXIBLE_VERSION: Final = 4
_SHORT: Final = 0x7F
"""A compact size below this plus one has one byte."""
_SMALLEST: Final = 20
"""Bytes of a value without metadata: version, offset, size of the metadata, timestamp."""


class CommitValues(Struct, frozen=True, kw_only=True):
    """Fields of values; -1 where the version lacks one, and in all fields of a tombstone."""

    offset: Ints
    leader_epoch: Ints
    metadata: Ints
    commit_timestamp_ms: Ints
    expire_timestamp_ms: Ints


def read_values(
    content: bytes, starts: Ints, sizes: Ints, texts: Texts
) -> tuple[CommitValues, Flags]:
    """The values of offset commits, and which of them are of an unusual form.

    Args:
        content: Bytes that hold the values, with `PADDING` behind.
        starts: Position of each value.
        sizes: Its size in bytes; -1 for a tombstone.
        texts: Gets the metadata.
    """
    count = len(starts)
    loops = LOOPS.current
    if loops is not None:
        fields, unusual = np.full((6, count), -1), np.zeros(count, bool)
        loops.read_values(np.frombuffer(content, np.uint8), starts, sizes, unusual, fields)
        return _with_metadata(content, fields, unusual, texts), unusual
    values = CommitValues(
        offset=np.full(count, -1),
        leader_epoch=np.full(count, -1),
        metadata=np.zeros(count, np.int64),
        commit_timestamp_ms=np.full(count, -1),
        expire_timestamp_ms=np.full(count, -1),
    )
    versions = np.where(sizes < _SMALLEST, -1, gathered(content, starts, ">i2"))
    odd = (sizes >= 0) & ((versions < 0) | (versions > HIGHEST_VALUE_VERSION))
    for version in range(HIGHEST_VALUE_VERSION + 1):
        rows = np.flatnonzero(versions == version)
        if len(rows):
            odd[rows] = _read_version(version, content, starts, sizes, (rows, values, texts))
    return values, odd


def _with_metadata(content: bytes, fields: Ints, odd: Flags, texts: Texts) -> CommitValues:
    """Values that the compiled loop read, with the texts that it only found."""
    offset, leader_epoch, commit_ms, expire_ms, at, size = fields
    metadata = np.zeros(len(odd), np.int64)
    for row in np.flatnonzero(~odd & (size > 0)).tolist():
        text = content[at[row] : at[row] + size[row]].decode(errors="replace")
        metadata[row] = texts.index_of(text)
    return CommitValues(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp_ms=commit_ms,
        expire_timestamp_ms=expire_ms,
    )


def _read_version(
    version: int,
    content: bytes,
    starts: Ints,
    sizes: Ints,
    target: tuple[Ints, CommitValues, Texts],
) -> Flags:
    """Read the values of one version; return which of its rows are of an unusual form."""
    rows, values, texts = target
    start, stop = starts[rows], starts[rows] + sizes[rows]
    values.offset[rows] = gathered(content, start + _OFFSET_AT, ">i8")
    at = start + _EPOCH_AT
    if version >= _EPOCH_VERSION:
        values.leader_epoch[rows] = gathered(content, at, ">i4")
        at += 4
    if version >= _FLEXIBLE_VERSION:
        text_size = gathered(content, at, ">u1") - 1
        odd = (text_size < 0) | (text_size >= _SHORT)
        at += 1
    else:
        text_size = gathered(content, at, ">i2")
        odd = text_size < 0
        at += 2
    after = at + text_size
    rest = 16 if version == _EXPIRE_VERSION else 8
    odd |= after + rest + (version >= _FLEXIBLE_VERSION) != stop
    after = np.where(odd, start, after)
    values.commit_timestamp_ms[rows] = gathered(content, after, ">i8")
    if version == _EXPIRE_VERSION:
        values.expire_timestamp_ms[rows] = gathered(content, after + 8, ">i8")
    if version >= _FLEXIBLE_VERSION:
        # A number of tags other than none belongs to the plain reader.
        odd |= gathered(content, after + 8, ">u1") != 0
    for index in np.flatnonzero(~odd & (text_size > 0)).tolist():
        text = content[at[index] : after[index]].decode(errors="replace")
        values.metadata[rows[index]] = texts.index_of(text)
    return odd
