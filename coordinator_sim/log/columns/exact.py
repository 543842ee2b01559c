"""Batches of an unusual form, read by the plain reader into the rows of the same columns."""

from typing import Final

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.commit_columns import NO_PRODUCER, OtherRecord, Texts
from coordinator_sim.log.columns.contents import MAX_CONTENT
from coordinator_sim.log.columns.key_table import UNWANTED, KeyTable
from coordinator_sim.log.format.log_batches import read_marker
from coordinator_sim.log.format.offsets_records import OFFSET_KEY, decode_key, decode_record
from coordinator_sim.log.format.record_batches import Record
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import LogRecord

_WRAP: Final = 2**63
_TYPE_SIZE: Final = 2
_NO_VALUE: Final = OffsetCommitValue(offset=-1, commit_timestamp=-1)


class ExactRows(Struct, frozen=True, kw_only=True):
    """What the plain reader finds in one batch.

    Args:
        rows: Wanted commits and tombstones, in the order of `commit_columns.NUMBERS`.
        marker: End of a transaction: producer, whether it was committed.
        others: Records of other types, where they are wanted.
        other_count: Number of records of other types, wanted or not.
        count: Number of records, of all types.
        first_offset: Offset of the first record; the batch's last one where there is none.
        damage: What did not parse.
    """

    rows: list[tuple[int, ...]]
    marker: tuple[int, bool] | None
    others: list[OtherRecord]
    other_count: int
    count: int
    first_offset: int
    damage: list[Damage]


def read_exactly(
    batch: StoredBatch, origin: int, keys: KeyTable, texts: Texts, *, others: bool
) -> ExactRows:
    """Read one batch with the plain reader; a batch that does not parse to its end has no rows.

    Args:
        batch: The batch.
        origin: Position in the segment of the bytes that hold it.
        keys: Gives the keys their numbers.
        texts: Gets the metadata.
        others: Whether records of other types are wanted.
    """
    try:
        if batch.control:
            return _control(batch)
        reading = _Reading(batch, origin, keys, texts, others=others)
        for record in batch.streamed(MAX_CONTENT):
            if record is not None:
                reading.take(record)
    except WireFormatError as error:
        place = Damage(
            position=origin + batch.position,
            invalid_bytes=batch.size,
            reason=f"batch at offset {batch.last_offset}: {error.args[0]}",
        )
        return ExactRows(
            rows=[],
            marker=None,
            others=[],
            other_count=0,
            count=0,
            first_offset=batch.last_offset,
            damage=[place],
        )
    return reading.rows()


def damaged_record(position: int, offset: int, error: WireFormatError) -> Damage:
    """The damage of one record in a batch that is otherwise read."""
    return Damage(
        position=position,
        invalid_bytes=0,
        reason=f"record at offset {offset}: {error.args[0]}",
    )


def required_key(key: bytes | None) -> bytes:
    """The key of a record.

    Raises:
        WireFormatError: There is none.
    """
    if key is None:
        raise WireFormatError("it has no key", 0)
    return key


def as_long(value: int) -> int:
    """The number as Java's 64 bits hold it."""
    return (value + _WRAP) % (2 * _WRAP) - _WRAP


def is_other_key(raw: bytes) -> bool:
    """Whether a key is of another type than an offset's; one cut short may be of any."""
    return len(raw) >= _TYPE_SIZE and int.from_bytes(raw[:_TYPE_SIZE], "big") > OFFSET_KEY


def _control(batch: StoredBatch) -> ExactRows:
    """Read the marker that ends a transaction; an unreadable marker counts as an abort."""
    records = [record for record in batch.streamed(MAX_CONTENT) if record is not None]
    marker = read_marker(records[0]) if records else None
    is_commit = marker is not None and marker.committed
    return ExactRows(
        rows=[],
        marker=(batch.producer_id, is_commit),
        others=[],
        other_count=0,
        count=len(records),
        first_offset=batch.base_offset,
        damage=[],
    )


class _Reading:
    """The records of one batch, taken one by one."""

    def __init__(
        self, batch: StoredBatch, origin: int, keys: KeyTable, texts: Texts, *, others: bool
    ) -> None:
        self._position = origin + batch.position
        self._producer_id = batch.producer_id if batch.transactional else NO_PRODUCER
        self._last_offset = batch.last_offset
        self._keys = keys
        self._texts = texts
        self._wants_others = others
        self._rows: list[tuple[int, ...]] = []
        self._others: list[OtherRecord] = []
        self._damage: list[Damage] = []
        self._count = self._other_count = 0
        self._first_offset: int | None = None

    def rows(self) -> ExactRows:
        """All that was taken."""
        first = self._first_offset
        return ExactRows(
            rows=self._rows,
            marker=None,
            others=self._others,
            other_count=self._other_count,
            count=self._count,
            first_offset=self._last_offset if first is None else first,
            damage=self._damage,
        )

    def take(self, record: Record) -> None:
        """Add one record to the rows, the others, or the damage."""
        self._count += 1
        if self._first_offset is None:
            self._first_offset = record.offset
        try:
            self._take_keyed(record, required_key(record.key))
        except WireFormatError as error:
            self._damage.append(damaged_record(self._position, record.offset, error))

    def _take_keyed(self, record: Record, raw: bytes) -> None:
        is_other = is_other_key(raw)
        self._other_count += is_other
        if not (self._wants_others if is_other else self._keys.is_plausible(raw)):
            return
        key = decode_key(raw)
        number = self._keys.number_of(key) if isinstance(key, OffsetCommitKey) else UNWANTED
        if number == UNWANTED and not is_other:
            return
        decoded = decode_record(raw, record.value)
        if is_other:
            self._others.append(
                OtherRecord(
                    log_offset=as_long(record.offset),
                    timestamp_ms=as_long(record.timestamp_ms),
                    record=decoded,
                )
            )
            return
        self._rows.append(self._row(number, record, decoded))

    def _row(self, number: int, record: Record, decoded: LogRecord) -> tuple[int, ...]:
        value = decoded.value if isinstance(decoded.value, OffsetCommitValue) else _NO_VALUE
        return (
            number,
            as_long(record.offset),
            as_long(record.timestamp_ms),
            value.offset,
            value.leader_epoch,
            self._texts.index_of(value.metadata),
            value.commit_timestamp,
            value.expire_timestamp,
            int(decoded.value is None),
            self._producer_id,
        )
