"""Random programs for a partition's log, and our log in the words of Kafka's.

`oracle/logs` runs Kafka's own `UnifiedLog` behind the same commands.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from coordinator_sim.disk.files import Files, OpenFiles
from coordinator_sim.disk.partition_folder import Opening, open_store
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.contract import SegmentStore
from coordinator_sim.log.format import record_batches
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import Record
from coordinator_sim.log.log_config import config_of
from coordinator_sim.log.log_values import Appended
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import end_of
from coordinator_sim.messages.records import EndTransactionMarker

T_MS = 1_700_000_000_000
_SHOWN = re.compile(r"in message (at offset \d+|\w*Record\w*\(.*\))(?=\. Producer)")
Json = dict[str, object]

CONFIGS: list[dict[str, str]] = [
    {"segment.bytes": "700"},
    {"segment.bytes": "1200", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
    {
        "segment.bytes": "900",
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": "0",
        "delete.retention.ms": "5000",
        "retention.ms": "60000",
    },
    {
        "segment.bytes": "600",
        "segment.ms": "20000",
        "retention.bytes": "2000",
        "retention.ms": "40000",
        "message.timestamp.type": "LogAppendTime",
    },
    {
        "segment.bytes": "5000",
        "max.message.bytes": "400",
        "compression.type": "uncompressed",
        "message.timestamp.before.max.ms": "5000",
        "message.timestamp.after.max.ms": "2000",
    },
]


class Programs:
    """Commands one after another, drawn by a seeded generator.

    Args:
        seed: Of everything.
        settings: Of the topic.
        magics: Formats of the log, and of what producers send.
    """

    def __init__(
        self, seed: int, settings: dict[str, str], magics: tuple[int, tuple[int, ...]] = (2, (2,))
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 - draws programs
        self._settings = settings
        self._magics = magics
        self._now = T_MS
        self._epoch = 0
        self._end = 0
        self._ends = [0]
        self._truncates = seed % 3 == 0
        self._producers: dict[int, list[int]] = {}
        self._sent: list[str] = []

    def commands(self, count: int) -> Iterator[Json]:
        """A number of commands, the first opens the log; `saw` wants each answer in between."""
        yield {"op": "open", "config": self._settings, "now": self._now}
        makers = {
            self._append: 45,
            self._marker: 10 if self._magics == (2, (2,)) else 0,
            self._read: 12,
            self._offset: 6,
            self._upkeep: 6,
            self._position: 5,
        }
        for _ in range(count):
            self._now += self._random.choice([0, 0, 1, 50, 3000])
            (maker,) = self._random.choices(list(makers), list(makers.values()))
            yield {**maker(), "now": self._now}

    def saw(self, state: Json) -> None:
        """Where the log ends now."""
        end = state["end"]
        assert isinstance(end, int)
        if end != self._end:
            self._ends = [*(one for one in self._ends if one < end), end][-3:]
        self._end = end

    def _append(self) -> Json:
        if self._sent and self._random.random() < 0.12:
            data = self._random.choice(self._sent[-12:])
        else:
            data = self._new_batch().hex()
            self._sent.append(data)
        if self._random.random() < 0.02:
            data = data[:-2] + f"{(int(data[-2:], 16) + 1) % 256:02x}"
        return {"op": "append", "records": data, "epoch": self._epoch, "magic": self._magics[0]}

    def _new_batch(self) -> bytes:
        pick = self._random
        magic = pick.choice(self._magics[1])
        lowest = self._now - 6000 if pick.random() < 0.2 else self._now - 100
        records = tuple(
            Record(
                offset=index,
                timestamp_ms=pick.randrange(lowest, self._now + 100) if magic else -1,
                key=None if pick.random() < 0.03 else b"k%d" % pick.randrange(6),
                value=None if pick.random() < 0.15 else b"v" * pick.randrange(40),
                headers=(("h", b"x"),) if magic == 2 and pick.random() < 0.05 else (),
            )
            for index in range(pick.choice([1, 1, 1, 2, 3, 7]))
        )
        codec = Compression.NONE
        # What is compressed anew has other bytes here.
        stays = self._magics == (2, (2,)) and "cleanup.policy" not in self._settings
        unpacks = self._settings.get("compression.type") == "uncompressed"
        if pick.random() < 0.2 and (stays or unpacks):
            codec = pick.choice([Compression.GZIP, Compression.LZ4, Compression.SNAPPY])
        batch = record_batches.batch_of(records, magic=magic, compression=codec)
        if pick.random() < 0.05:
            batch = replace(batch, max_timestamp_ms=self._now + 77)
        if pick.random() < 0.03:
            batch = replace(batch, timestamp_type=record_batches.TimestampType.LOG_APPEND_TIME)
        if magic == 2 and self._magics[0] == 2 and pick.random() < 0.6:
            batch = self._of_producer(batch)
        return record_batches.encode_record_batch(batch)

    def _of_producer(self, batch: record_batches.RecordBatch) -> record_batches.RecordBatch:
        pick = self._random
        producer_id = pick.randrange(1, 5)
        state = self._producers.setdefault(producer_id, [0, 0])
        if pick.random() < 0.05:
            state[0] += 1
            state[1] = 0
        epoch = state[0] - (pick.random() < 0.04)
        sequence = max(0, state[1] + pick.choices([0, 1, -1], [92, 4, 4])[0])
        state[1] = sequence + len(batch.records)
        return replace(
            batch,
            producer_id=producer_id,
            producer_epoch=max(0, epoch),
            base_sequence=sequence,
            transactional=producer_id > 2,
        )

    def _marker(self) -> Json:
        pick = self._random
        producer_id = pick.randrange(1, 6)
        epoch = self._producers.get(producer_id, [0, 0])[0]
        return {
            "op": "marker",
            "pid": producer_id,
            "pepoch": max(0, epoch + pick.choices([0, 1, -1], [70, 25, 5])[0]),
            "commit": pick.random() < 0.5,
            "coordinator_epoch": pick.choices([1, 2, 0], [90, 3, 7])[0],
            "epoch": self._epoch,
            "transaction_version": pick.choice([0, 1, 2]),
        }

    def _read(self) -> Json:
        return {
            "op": "read",
            "offset": self._random.randrange(-1, self._end + 3),
            "max": self._random.choice([0, 50, 200, 1000, 100_000]),
            "committed": self._random.random() < 0.5,
            "min_one": self._random.random() < 0.7,
        }

    def _offset(self) -> Json:
        positions = [-1, -2, -3, -4, -5]
        if self._random.random() < 0.5:
            return {"op": "offset", "time": self._random.choice(positions)}
        return {"op": "offset", "time": self._random.randrange(T_MS - 200, self._now + 300)}

    def _upkeep(self) -> Json:
        if self._truncates:
            # What is learnt again of producers after that depends on which snapshots are left.
            return {"op": "retain"}
        op = self._random.choice(["retain", "expire", "clean", "clean", "reopen"])
        if op == "expire" and self._random.random() < 0.2:
            self._now += 86_400_000
        return {"op": op}

    def _position(self) -> Json:
        pick = self._random
        last = "truncate" if self._truncates else "delete"
        if self._magics[0] < 2:
            # Epochs belong to the newer format; the oracle's log believes to have it.
            return {"op": "hold", "offset": 2**62}
        op = pick.choice(["hold", "hold", "lead", "epoch_end", last])
        if op == "lead":
            self._epoch += pick.randrange(1, 3)
            return {"op": op, "epoch": self._epoch}
        if op == "epoch_end":
            return {"op": op, "epoch": pick.randrange(-1, self._epoch + 2)}
        if op == "hold":
            held = self._end if pick.random() < 0.4 else 2**62
            return {"op": op, "offset": held}
        if op == "delete":
            return {"op": op, "offset": pick.choice([-1, pick.randrange(0, self._end + 3)])}
        return {"op": op, "offset": pick.choice(self._ends)}


class OurLog:
    """Our log, answering as the oracle does.

    Args:
        root: Where a log makes its folder; None to keep it in memory.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._store: SegmentStore = MemoryStore()
        self._log = PartitionLog("t", 0, self._store)
        self._held: int | None = None
        self._magic = 2

    def answer(self, command: Json) -> Json:
        """Carry a command out."""
        answer: Json = getattr(self, f"_{command['op']}")(command)
        log = self._log
        answer["state"] = {
            "start": log.log_start_offset,
            "end": log.end_offset,
            "high_watermark": log.high_watermark,
            "stable": log.last_stable_offset,
            "segments": [[one.base_offset, one.size_bytes] for one in self._store.segments()],
            "epochs": [[one.leader_epoch, one.start_offset] for one in log.epochs()],
            "producers": [
                [
                    one.producer_id,
                    one.producer_epoch,
                    one.last_sequence,
                    one.last_timestamp_ms,
                    one.coordinator_epoch,
                    one.current_txn_start_offset,
                ]
                for one in sorted(log.producers(), key=lambda each: each.producer_id)
            ],
        }
        return answer

    def _store_of(self, log_start_offset: int) -> SegmentStore:
        if self._root is None:
            return self._store
        folder = self._root / "t-0"
        folder.mkdir(exist_ok=True)
        opening = Opening(folder=str(folder), log_start_offset=log_start_offset)
        store, _ = open_store(opening, OpenFiles(Files()))
        return store

    def _open(self, command: Json) -> Json:
        self._store = MemoryStore()
        self._store = self._store_of(0)
        self._held = None
        self._config = config_of(command["config"])  # type: ignore[arg-type]
        self._log = PartitionLog("t", 0, self._store, self._config)
        return {}

    def _append(self, command: Json) -> Json:
        if command["magic"] != self._magic:
            self._magic = int(command["magic"])  # type: ignore[call-overload]
            self._log.configure(replace(self._config, message_format_magic=self._magic))
        return _told(
            self._log.append(
                bytes.fromhex(str(command["records"])),
                now_ms=command["now"],  # type: ignore[arg-type]
                leader_epoch=command["epoch"],  # type: ignore[arg-type]
            )
        )

    def _marker(self, command: Json) -> Json:
        return _told(
            self._log.append_marker(
                command["pid"],  # type: ignore[arg-type]
                command["pepoch"],  # type: ignore[arg-type]
                EndTransactionMarker(
                    committed=bool(command["commit"]),
                    coordinator_epoch=command["coordinator_epoch"],  # type: ignore[arg-type]
                ),
                now_ms=command["now"],  # type: ignore[arg-type]
                leader_epoch=command["epoch"],  # type: ignore[arg-type]
                transaction_version=command["transaction_version"],  # type: ignore[arg-type]
            )
        )

    def _read(self, command: Json) -> Json:
        read = self._log.read(
            command["offset"],  # type: ignore[arg-type]
            max_bytes=command["max"],  # type: ignore[arg-type]
            read_committed=bool(command["committed"]),
            min_one_batch=bool(command["min_one"]),
        )
        if read.error is not ErrorCode.NONE:
            return {"error": read.error.name}
        aborted = [[one.producer_id, one.first_offset] for one in read.aborted or ()]
        return {"bytes": read.records.hex(), "aborted": aborted}

    def _offset(self, command: Json) -> Json:
        found = self._log.offset_for_timestamp(command["time"])  # type: ignore[arg-type]
        return {"found": [found.timestamp_ms, found.offset, found.leader_epoch]}

    def _epoch_end(self, command: Json) -> Json:
        found = self._log.end_offset_for_epoch(command["epoch"])  # type: ignore[arg-type]
        return {"found": [found.leader_epoch, found.end_offset]}

    def _delete(self, command: Json) -> Json:
        error = self._log.delete_before(command["offset"])  # type: ignore[arg-type]
        if error is not ErrorCode.NONE:
            return {"error": error.name}
        self._log.maintain_retention(command["now"])  # type: ignore[arg-type]
        return {}

    def _hold(self, command: Json) -> Json:
        self._held = int(command["offset"])  # type: ignore[call-overload]
        self._log.hold_high_watermark(self._held)
        return {}

    def _lead(self, command: Json) -> Json:
        self._log.become_leader(command["epoch"])  # type: ignore[arg-type]
        return {}

    def _retain(self, command: Json) -> Json:
        self._log.maintain_retention(command["now"])  # type: ignore[arg-type]
        return {}

    def _expire(self, command: Json) -> Json:
        self._log.expire_producers(command["now"])  # type: ignore[arg-type]
        return {}

    def _clean(self, command: Json) -> Json:
        while self._log.clean_some(command["now"]):  # type: ignore[arg-type]
            pass
        return {}

    def _truncate(self, command: Json) -> Json:
        self._held = None
        self._log.hold_high_watermark(None)
        self._log.truncate_to(command["offset"], now_ms=command["now"])  # type: ignore[arg-type]
        return {}

    def _reopen(self, command: Json) -> Json:
        self._log.close()
        self._store = self._store_of(self._log.log_start_offset)
        self._log = PartitionLog(
            "t",
            0,
            self._store,
            self._log.config,
            now_ms=command["now"],  # type: ignore[arg-type]
        )
        return {}


def _told(appended: Appended) -> Json:
    """In the oracle's words."""
    if appended.error is not ErrorCode.NONE:
        told: Json = {"error": appended.error.name}
        if appended.record_errors:
            told["message"] = appended.message
            told["records"] = [[one.index, one.message] for one in appended.record_errors]
        return told
    return {
        "first": appended.base_offset,
        "last": appended.last_offset,
        "time": appended.log_append_time_ms,
    }


def comparable(command: Json, answer: Json) -> Json:
    """An answer without what our log leaves out on purpose, or Kafka tells at random.

    Kafka lists aborted transactions up to the next entry of an index, beyond what was read. A
    segment that cleaning emptied is to Kafka as young as its file. Where DeleteRecords cut into a
    batch behind an open transaction, its last stable offset is before the log's start.
    """
    told = {name: value for name, value in answer.items() if name != "why"}
    state = cast("dict[str, int]", told["state"])
    segments = cast("dict[str, list[list[int]]]", told["state"])["segments"]
    is_cut = state["stable"] <= state["start"]
    state["stable"] = max(state["stable"], state["start"])
    found = cast("list[list[int]]", told.get("aborted", []))
    data = bytes.fromhex(str(told.get("bytes", "")))
    if command["op"] == "read" and command["committed"] and is_cut:
        told |= {"bytes": "", "aborted": []}
    elif "aborted" in told:
        end = end_of(data)
        told["aborted"] = [entry for entry in found if entry[1] < end]
    if "records" in told:
        # Kafka shows the record, by the class that it was read with.
        errors = cast("list[list[str]]", told["records"])
        told["records"] = [
            [index, _SHOWN.sub("in message at", message)] for index, message in errors
        ]
    if command["op"] == "offset":
        is_vague = any(size == 0 for _, size in segments[:-1])
        wants_time = cast("int", command["time"]) >= 0
        told["found"] = None if is_vague and wants_time else told.get("found") or [-1, -1, -1]
    return told


def for_kafka(command: Json) -> Json:
    """A command in the words of a broker, whose segments have a lower bound otherwise."""
    if command["op"] != "open":
        return command
    settings = dict(cast("dict[str, str]", command["config"]))
    settings["internal.segment.bytes"] = settings.pop("segment.bytes")
    return {**command, "config": settings}
