"""Kills a process that writes a log directory, again and again, and looks at what is left.

Run as a program: `kill_loop.py DIRECTORY KILLS SEED`; one line of JSON says what was seen. A child
appends through `PartitionLog` and tells each append only after it returned; it is killed at any
moment, also while it recovers what the last one left.
"""

import json
import os
import select
import signal
import sys
import zlib
from random import Random

from msgspec import Struct
from msgspec.msgpack import Decoder

from coordinator_sim.disk.log_directory import DirectorySettings, LogDirectory
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in, span_of
from coordinator_sim.messages.records import EndTransactionMarker

PARTITIONS = 3
NOW_MS = 1_700_000_000_000
PATIENCE_S = 30
CONFIG = LogConfig(segment_bytes=4_000, index_interval_bytes=300)


class Named(Struct, frozen=True, tag=True):
    """An entry of the journal."""

    number: int


def directory(path: str) -> LogDirectory:
    """The directory, whose ids do not matter."""
    opened = LogDirectory(DirectorySettings(path=path, node_id=1, new_id=lambda: bytes(16)))
    opened.go_on()
    return opened


def logs_of(opened: LogDirectory) -> list[PartitionLog]:
    """The partitions' logs."""
    return [
        PartitionLog("t", number, opened.store("t", number, bytes(16)), CONFIG, now_ms=NOW_MS)
        for number in range(PARTITIONS)
    ]


class Writer:
    """The child's work: appends of producers, transactions, deletions and entries of a journal."""

    def __init__(self, path: str, seed: int, out: int) -> None:
        self.random = Random(seed)  # noqa: S311 - tests
        opened = directory(path)
        if self.random.randrange(4) == 0:
            opened.close()  # An orderly end in between: checkpoints, and a mark to be removed.
            opened = directory(path)
        self.directory = opened
        self.journal, entries = opened.journal(Decoder(Named))
        self.number = entries[-1].number + 1 if entries else 0
        self.logs = logs_of(opened)
        self.out = out
        self.producer_id = seed * 10_000
        self.open: list[list[int]] = [[] for _ in self.logs]

    def tell(self, *words: object) -> None:
        """Acknowledge."""
        os.write(self.out, (" ".join(map(str, words)) + "\n").encode())

    def run(self) -> None:
        """Until killed."""
        while True:
            self.random.choice(
                (self.append,) * 8 + (self.end, self.name, self.delete, self.flush)
            )()

    def append(self) -> None:
        """A batch of a new producer, in a transaction now and then."""
        log = self.random.choice(self.logs)
        size, count = self.random.choice((5, 100, 1_500)), self.random.randrange(1, 4)
        records = tuple(
            Record(offset=index, timestamp_ms=NOW_MS + index, key=b"k", value=bytes(size))
            for index in range(count)
        )
        self.producer_id += 1
        transactional = self.random.randrange(3) == 0
        data = encode_record_batch(
            batch_of(
                records,
                producer_id=self.producer_id,
                producer_epoch=0,
                base_sequence=0,
                transactional=transactional,
            )
        )
        done = log.append(data, now_ms=NOW_MS, leader_epoch=1, produce_version=9)
        if transactional:
            self.open[log.partition].append(self.producer_id)
        stored = log.read(done.base_offset, max_bytes=1).records
        self.tell("batch", log.partition, done.base_offset, zlib.crc32(stored))

    def end(self) -> None:
        """Commit or abort a transaction."""
        log = self.random.choice(self.logs)
        if not self.open[log.partition]:
            return
        producer_id = self.open[log.partition].pop()
        marker = EndTransactionMarker(committed=self.random.randrange(2) == 0, coordinator_epoch=1)
        done = log.append_marker(producer_id, 0, marker, now_ms=NOW_MS, leader_epoch=1)
        stored = log.read(done.base_offset, max_bytes=1).records
        self.tell("batch", log.partition, done.base_offset, zlib.crc32(stored))

    def name(self) -> None:
        """An entry of the journal."""
        self.journal.append(Named(self.number))
        self.tell("entry", self.number)
        self.number += 1

    def delete(self) -> None:
        """Let the first partition begin later."""
        log = self.logs[0]
        if log.end_offset > 200 and self.random.randrange(20) == 0:
            log.delete_before(log.end_offset - 100)
            self.tell("start", log.log_start_offset)

    def flush(self) -> None:
        """Let everything before here need no scan."""
        if self.random.randrange(4) == 0:
            for number in range(PARTITIONS):
                self.directory.store("t", number).flush()
            self.directory.checkpoint()


class Witness:
    """What was acknowledged, and what is there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.batches: dict[tuple[int, int], int] = {}
        self.entries = 0
        self.start = 0
        self.cuts = 0
        self.wrong: list[str] = []

    def hear(self, line: str) -> None:
        """An acknowledgement."""
        kind, *numbers = line.split()
        if kind == "batch":
            partition, offset, crc = map(int, numbers)
            self.batches[partition, offset] = crc
        elif kind == "entry":
            self.entries = int(numbers[0]) + 1
        else:
            self.start = int(numbers[0])

    def look(self) -> None:
        """Open what is left and compare."""
        opened = directory(self.path)
        _, entries = opened.journal(Decoder(Named))
        numbers = [entry.number for entry in entries]
        self.expect(numbers == list(range(len(numbers))), f"journal {numbers}")
        self.expect(len(numbers) >= self.entries, f"{len(numbers)} entries of {self.entries}")
        self.cuts += len(opened.report.cuts)
        for log in logs_of(opened):
            self.compare(log)
        opened.abandon()

    def compare(self, log: PartitionLog) -> None:
        """One partition: acknowledged batches, good CRCs, producers as from a full reading."""
        number, start = log.partition, log.log_start_offset
        self.expect(number or start >= self.start, f"log start {start} of {self.start}")
        found: dict[int, int] = {}
        end = None
        copy = MemoryStore()
        for batch in (batch for data in log.chunks() for batch in batches_in(data)):
            self.expect(batch.is_valid, f"{number}: CRC at {batch.base_offset}")
            self.expect(end in {None, batch.base_offset}, f"{number}: gap at {end}")
            end = batch.next_offset
            found[batch.base_offset] = zlib.crc32(batch.raw())
            copy.append(bytes(batch.raw()), (span_of(batch),), NOW_MS)
        for (partition, offset), crc in self.batches.items():
            if partition == number and offset >= start:
                self.expect(found.get(offset) == crc, f"{number}: batch {offset} is lost")
        self.expect((end or start) == log.end_offset, f"{number}: end {end}, {log.end_offset}")
        if number:
            self.expect(known(log) == known(PartitionLog("t", number, copy)), f"{number}: state")

    def expect(self, is_so: object, what: str) -> None:
        """Note what is not as it should be."""
        if not is_so:
            self.wrong.append(what)


def known(log: PartitionLog) -> tuple[object, ...]:
    """What a log knows of producers and transactions."""
    producers = sorted(log.producers(), key=lambda producer: producer.producer_id)
    aborted = log._store.aborted(0, log.end_offset)
    return producers, log.last_stable_offset, aborted


def write_until_killed(path: str, seed: int, out: int) -> None:
    """The child."""
    try:
        Writer(path, seed, out).run()
    finally:
        os._exit(1)


def killed_after(path: str, seed: int, delay_s: float, witness: Witness) -> None:
    """Let one child write for a while, hear it to its end, look."""
    source, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(source)
        write_until_killed(path, seed, out)
    os.close(out)
    if seed % 4:  # The fourth may die before it has recovered what the third left.
        select.select([source], [], [], PATIENCE_S)
    select.select([], [], [], delay_s)
    os.kill(pid, signal.SIGKILL)
    with os.fdopen(source, "rb") as told:
        lines = told.read().split(b"\n")
    for line in lines[:-1]:
        witness.hear(line.decode())
    status = os.waitpid(pid, 0)[1]
    witness.expect(os.WIFSIGNALED(status), f"the child of seed {seed} ended by itself")
    witness.look()


def main(path: str, kills: int, seed: int) -> None:
    """Kill that many children."""
    random = Random(seed)  # noqa: S311 - tests
    witness = Witness(path)
    for number in range(kills):
        killed_after(path, seed + number + 1, random.choice((0.001, 0.01, 0.02)), witness)
    print(  # noqa: T201 - its answer
        json.dumps(
            {
                "batches": len(witness.batches),
                "entries": witness.entries,
                "cuts": witness.cuts,
                "wrong": witness.wrong[:10],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
