"""Random programs for a share partition, and our share partition in the words of Kafka's.

`oracle/shares` runs Kafka's own `SharePartition` behind the same commands.
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from coordinator_sim.broker.configs.setting_types import settings_of
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.shares import share_values
from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLocks
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_state import InFlightState
from coordinator_sim.broker.shares.persister import SharePartitionKey, StateBatch, StateRead
from coordinator_sim.broker.shares.share_partition import SharePartition
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.share_types import ShareAcquireMode
from coordinator_sim.log.contract import AbortedTransaction
from coordinator_sim.log.format.log_batches import encode_batch
from coordinator_sim.log.format.record_batches import Record, RecordBatch, encode_record_batch
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch
from coordinator_sim.messages.share_acknowledge import AcknowledgementBatch
from tests.unit.broker.shares.held_answers import HeldLetters, HeldPersister, ScriptedOffsets

Json = dict[str, Any]

RENEW = "share.renew.acknowledge.enable"
T_MS = 1_700_000_000_000
_TIMESTAMP = re.compile(r"timestamp \d+")
TOPIC_ID = (1).to_bytes(8, "big") + (2).to_bytes(8, "big")
ERRORS = [
    *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
    *("GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION", "FENCED_LEADER_EPOCH"),
    *("FENCED_STATE_EPOCH", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_VERSION"),
    *("NETWORK_EXCEPTION", "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"),
]


class OurPartition:
    """A share partition of ours behind the oracle's commands.

    Args:
        profile: The Kafka that it is to be.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._now_ms = 0
        self._commands: dict[str, Callable[[Json, Json], None]] = {
            "open": lambda _command, _answer: None,
            "advance": self._advance,
            "settings": lambda command, _: self._set(command["settings"]),
            "persister": self._persist,
            "answer": self._answer_held,
            "letters": self._set_letters,
            "letter": lambda command, _: self._letters.answer(command["index"], self._now),
            "initialize": self._initialize,
            "lock": self._lock,
            "unlock": lambda command, _: self._partition.release_fetch_lock(command["fetch"]),
            "acquire": self._acquire,
            "acknowledge": self._acknowledge,
            "release": self._release,
            "logStart": lambda command, _: self._partition.update_cache_and_offsets(
                command["offset"]
            ),
            "fence": lambda _command, _answer: self._partition.mark_fenced(),
        }

    @property
    def _now(self) -> Instants:
        return Instants(self._now_ms, self._now_ms)

    def answer(self, command: Json) -> Json:
        """Carry out a command and answer as the oracle does."""
        self._done: list[object] = []
        self._fetchable = 0
        answer: Json = {"done": self._done}
        if command["op"] == "open":
            self._open(command)
        self._persister.writes = answer["writes"] = []
        self._letters.taken = answer["letters"] = []
        try:
            self._commands[command["op"]](command, answer)
            while (due_ms := self._locks.next_deadline_ms()) is not None and due_ms <= self._now_ms:
                self._locks.expire(self._now)
        except OperationAborted:
            answer["threw"] = "UNKNOWN_SERVER_ERROR"
        answer["fetchable"] = self._fetchable
        answer["state"] = self._state(whole=command.get("whole", False))
        return answer

    def _open(self, command: Json) -> None:
        self._now_ms = command["now"]
        stored = command["stored"]
        batches = tuple(StateBatch(*batch) for batch in stored["batches"])
        self._persister = HeldPersister(StateRead(stored["stateEpoch"], stored["start"], batches))
        self._letters = HeldLetters()
        self._locks = AcquisitionLocks(Scheduler().wake_by_group_ms)
        self._locks.start(self._now)
        self._reset = command["reset"]
        self._set(command["settings"])
        self._partition = SharePartition(
            SharePartitionKey("g", TOPIC_ID, 0),
            command["leaderEpoch"],
            topic="t",
            settings=lambda: self._settings,
            persister=self._persister,
            offsets=ScriptedOffsets(command["offsets"]),
            locks=self._locks,
            on_fetchable=self._became_fetchable,
            dead_letters=self._letters if self._profile.share_dead_letters else None,
        )

    def _became_fetchable(self) -> None:
        self._fetchable += 1

    def _set(self, settings: Json) -> None:
        self._settings = share_values.ShareSettings(
            record_lock_duration_ms=settings["lockMs"],
            delivery_count_limit=settings["deliveries"],
            partition_max_record_locks=settings["locks"],
            auto_offset_reset=self._reset,
            is_renew_acknowledge_enabled=settings["renews"],
        )

    def _advance(self, command: Json, _answer: Json) -> None:
        self._now_ms += command["ms"]

    def _persist(self, command: Json, _answer: Json) -> None:
        error = command["error"]
        self._persister.error = None if error is None else ErrorCode[error]

    def _answer_held(self, command: Json, _answer: Json) -> None:
        self._persister.answer(command["index"], ErrorCode[command["error"]])

    def _set_letters(self, command: Json, _answer: Json) -> None:
        self._letters.enabled = command["enabled"]
        self._letters.is_held = command["held"]

    def _then(self, command: Json) -> Callable[[Refusal | None], None]:
        def told(refusal: Refusal | None) -> None:
            if refusal is None:
                self._done.append([command["id"], "NONE"])
            elif refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR:
                self._done.append([command["id"], refusal.error.name])
            else:
                self._done.append([command["id"], refusal.error.name, refusal.text])

        return told

    def _initialize(self, command: Json, _answer: Json) -> None:
        self._partition.maybe_initialize(self._now, self._then(command))

    def _lock(self, command: Json, answer: Json) -> None:
        answer["locked"] = self._partition.maybe_acquire_fetch_lock(command["fetch"])

    def _acquire(self, command: Json, answer: Json) -> None:
        request = share_values.AcquireRequest(
            member_id=command["member"],
            mode=ShareAcquireMode(command["mode"]),
            batch_size=command["batchSize"],
            max_fetch_records=command["maxRecords"],
            fetch_offset=command["offset"],
            batches=share_values.fetched_batches(bytes.fromhex(command["records"])),
            aborted=tuple(
                AbortedTransaction(producer, first, -1, -1)
                for producer, first in command["aborted"]
            ),
            is_read_committed=command["committed"],
        )
        acquired = self._partition.acquire(request, self._now)
        answer["acquired"] = [
            [one.first_offset, one.last_offset, one.delivery_count] for one in acquired.records
        ]
        answer["count"] = acquired.count

    def _acknowledge(self, command: Json, _answer: Json) -> None:
        batches = [
            AcknowledgementBatch(first, last, tuple(types))
            for first, last, types in command["batches"]
        ]
        self._partition.acknowledge(command["member"], batches, self._now, self._then(command))

    def _release(self, command: Json, _answer: Json) -> None:
        self._partition.release_acquired_records(command["member"], self._now, self._then(command))

    def _state(self, *, whole: bool) -> Json:
        partition = self._partition
        records = partition.records
        told: Json = {
            "state": partition.state.name,
            "next": partition.next_fetch_offset(),
            "can": partition.can_acquire_records(),
            "start": partition.start_offset,
            "end": partition.end_offset,
            "complete": partition.delivery_complete_count,
            "epochs": f"{partition.state_epoch} {partition.leader_epoch}",
            "waiting": self._persister.waiting,
            "posting": self._letters.waiting,
            "batches": len(records.batches),
        }
        if whole:
            gap = records.gap_window
            told["find"] = records.has_released
            told["gap"] = None if gap is None else f"{gap.gap_start_offset}-{gap.end_offset}"
            told["cached"] = [_cached(batch) for batch in records.batches]
        return told


def _cached(batch: InFlightBatch) -> list[object]:
    told: list[object] = [batch.first_offset, batch.last_offset]
    if not batch.is_split:
        return [*told, _in_flight(batch.state)]
    parts = batch.parts()
    return [
        *told,
        *(
            f"{at}: {_in_flight(state)}"
            for first, last, state in parts
            for at in range(first, last + 1)
        ),
    ]


def _in_flight(state: InFlightState) -> str:
    lock = "-"
    if state.lock is not None:
        lock = f"{state.lock.deadline_ms}{' over' if state.lock.has_expired else ''}"
    transition = str(state.is_in_transition).lower()
    return f"{state.state.name} {state.delivery_count} {state.member_id} {transition} {lock}"


class Log:
    """A log that grows as it is read, and may have holes.

    Args:
        draw: Draws its batches.
        start: Its first offset.
    """

    def __init__(self, draw: random.Random, start: int) -> None:
        self._draw = draw
        self._end = start
        self._batches: list[tuple[int, int, bytes]] = []
        self._open: dict[int, int] = {}
        self._aborted: list[tuple[int, int, int]] = []

    @property
    def end(self) -> int:
        """The next offset."""
        return self._end

    def read(self, offset: int, count: int) -> tuple[str, list[list[int]]]:
        """Batches from an offset on, and the aborted transactions with records among them."""
        while self._end <= offset + 3 * count:
            self._append()
        found = [batch for batch in self._batches if batch[1] >= offset][:count]
        if not found:
            return "", []
        first, last = found[0][0], found[-1][1]
        aborted = [
            [producer, begin]
            for producer, begin, end in self._aborted
            if begin <= last and end >= first
        ]
        return b"".join(data for _, _, data in found).hex(), aborted

    def compact(self, before: int) -> None:
        """Drop batches here and there."""
        self._batches = [
            batch for batch in self._batches if batch[0] >= before or self._draw.random() < 0.6
        ]

    def delete_before(self, offset: int) -> None:
        """Drop the batches that end before an offset."""
        self._batches = [batch for batch in self._batches if batch[1] >= offset]

    def _append(self) -> None:
        draw = self._draw
        if self._open and draw.random() < 0.25:
            producer = draw.choice(list(self._open))
            self._end_transaction(producer, committed=draw.random() < 0.4)
            return
        size = draw.choice([1, 1, 2, 3, 5, 5, 8, 13])
        first, last = self._end, self._end + size - 1
        kept = [first + i for i in range(size) if i == 0 or draw.random() < 0.9]
        producer = draw.choice([-1, -1, -1, 7, 8, 9])
        is_transactional = producer >= 8
        if is_transactional:
            self._open.setdefault(producer, first)
        batch = RecordBatch(
            base_offset=first,
            last_offset=last,
            records=tuple(
                Record(offset=at, timestamp_ms=T_MS, key=None, value=b"v") for at in kept
            ),
            base_timestamp_ms=T_MS,
            max_timestamp_ms=T_MS,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
            transactional=is_transactional,
        )
        self._batches.append((first, last, encode_record_batch(batch)))
        self._end = last + 1

    def _end_transaction(self, producer: int, *, committed: bool) -> None:
        begin = self._open.pop(producer)
        marker = LogBatch(
            partition=0,
            base_offset=self._end,
            timestamp_ms=T_MS,
            records=(),
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            marker=EndTransactionMarker(committed=committed),
            control=True,
        )
        self._batches.append((self._end, self._end, encode_batch(marker)))
        if not committed:
            self._aborted.append((producer, begin, self._end))
        self._end += 1


class Programs:
    """Commands one after another, drawn by a seeded generator.

    Args:
        seed: Of everything.
        profile: The Kafka that they are for.
    """

    def __init__(self, seed: int, profile: Profile) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - draws programs
        draw = self._draw
        self._members = [f"m{i}" for i in range(draw.choice([1, 2, 4]))]
        self._batch_size = draw.choice([1, 3, 10, 500])
        self._modes = draw.choice([(0,), (1,), (0, 1)])
        self._committed = draw.choice([(False,), (True,), (False, True)])
        self._lateness = draw.choice([0.0, 0.2, 0.5])
        self._insanity = draw.choice([0.0, 0.01, 0.02, 0.15])
        self._compacts = draw.random() < 0.4
        self._deletes = draw.random() < 0.6
        self._has_letters = profile.share_dead_letters and draw.random() < 0.5
        self._may_forbid_renewal = RENEW in settings_of(profile.name, "group")
        # 4.2 knows no state 3, and fails; nothing of its time wrote it.
        self._stored_states = (0, 0, 0, 2, 2, 4, 4, *((3,) if self._may_forbid_renewal else ()))
        self._acquired: dict[str, list[tuple[int, int]]] = {one: [] for one in self._members}
        self._state: Json = {}
        self._number = 0
        self._is_near_end = False
        self._settings = self._new_settings()

    def commands(self, count: int) -> Iterator[Json]:
        """A number of commands, the first opens the log; `saw` wants each answer in between."""
        yield self._opening()
        yield {"op": "initialize", "id": 0}
        makers = {
            self._acquire: 34,
            self._acknowledge: 30,
            self._advance: 10,
            self._answer: 12,
            self._persister: 6,
            self._release: 3,
            self._log_start: 3 if self._deletes else 0,
            self._compact: 2 if self._compacts else 0,
            self._lock: 2,
            self._change_settings: 1,
            self._change_letters: 2 if self._has_letters else 0,
            self._answer_letter: 8 if self._has_letters else 0,
            self._odd: 1,
        }
        for number in range(1, count):
            self._number = number
            self._is_near_end = number > 0.9 * count
            (maker,) = self._draw.choices(list(makers), list(makers.values()))
            command = maker()
            if number % 7 == 0:
                command["whole"] = True
            yield command

    def saw(self, command: Json, answer: Json) -> None:
        """What came of a command."""
        self._state = answer["state"]
        for first, last, _ in answer.get("acquired", ()):
            self._acquired[command["member"]].append((first, last))

    def _new_settings(self) -> Json:
        draw = self._draw
        return {
            "lockMs": draw.choice([1000, 5000, 30_000]),
            "deliveries": draw.choice([2, 2, 3, 5, 5, 6, 10]),
            "locks": draw.choice([10, 20, 50, 200, 2000]),
            "renews": draw.random() < 0.8 or not self._may_forbid_renewal,
        }

    def _opening(self) -> Json:
        draw = self._draw
        start = draw.choice([-1, 0, 5, 100])
        at = base = max(start, 0)
        batches = []
        if start >= 0 and draw.random() < 0.6:
            at += draw.choice([0, 0, 0, 2, 20])
            for _ in range(draw.randrange(8)):
                at += draw.choice([0, 0, 0, 1, 3, 10])
                last = at + draw.choice([0, 1, 4, 9])
                state = draw.choice(self._stored_states)
                batches.append([at, last, state, draw.randrange(4)])
                at = last + 1
        if batches and draw.random() < 0.1:
            bad = draw.choice(batches)
            bad[draw.randrange(3)] = draw.choice([0, 4, 9])
        self._log = Log(draw, max(0, base - draw.choice([0, 0, 3, -4])))
        none = draw.random() < 0.05
        return {
            "op": "open",
            "now": T_MS + draw.randrange(500),
            "leaderEpoch": draw.randrange(3),
            "reset": draw.choice(["latest", "earliest", "by_duration:PT1H"]),
            "offsets": {
                what: None if none else draw.choice([0, 3, 40])
                for what in ("earliest", "latest", "timestamp")
            },
            "stored": {"stateEpoch": draw.randrange(5), "start": start, "batches": batches},
            "settings": self._settings,
        }

    def _acquire(self) -> Json:
        draw = self._draw
        offset = self._state["next"]
        if draw.random() < self._insanity:
            offset = max(0, offset + draw.randrange(-20, 20))
        records, aborted = self._log.read(offset, draw.choice([0, 1, 1, 2, 2, 3, 5, 8]))
        return {
            "op": "acquire",
            "member": draw.choice(self._members),
            "mode": draw.choice(self._modes),
            "batchSize": self._batch_size if draw.random() < 0.9 else draw.choice([1, 2, 7]),
            "maxRecords": draw.choice([0, 1, 2, 5, 10, 50, 500, 500]),
            "offset": offset,
            "records": records,
            "aborted": aborted,
            "committed": draw.choice(self._committed),
        }

    def _acknowledge(self) -> Json:
        draw = self._draw
        member = draw.choice(self._members)
        owned = self._acquired[member]
        batches = []
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            if draw.random() < self._insanity or not owned:
                first = max(0, self._state["start"] + draw.randrange(-5, 30))
                last = first + draw.choice([0, 1, 5, 30])
            elif draw.random() < 0.15:
                first, last = owned[0][0], draw.choice(owned)[1]
                first, last = min(first, last), max(first, last)
            else:
                index = draw.randrange(len(owned))
                first, last = owned[index]
                if draw.random() < 0.3:
                    first = draw.randint(first, last)
                    last = draw.randint(first, last)
                if draw.random() < 0.8:
                    del owned[index]
            batches.append([first, last, self._types(last - first + 1)])
        if draw.random() > self._insanity:
            batches.sort()
        return {"op": "acknowledge", "member": member, "batches": batches, "id": self._number}

    def _types(self, count: int) -> list[int]:
        draw = self._draw
        if draw.random() < self._insanity / 8:
            return draw.choice([[], [5], [1, 1], [-1], [1, 9, 1]])
        kinds = draw.choice([[1], [1, 1, 1, 3], [2], [1, 2], [0, 1, 2, 3, 4], [4]])
        if draw.random() < 0.6:
            return [draw.choice(kinds)]
        return [draw.choice(kinds) for _ in range(count)]

    def _advance(self) -> Json:
        lock_ms = cast("int", self._settings["lockMs"])
        wait = self._draw.choice([0, 1, 100, lock_ms // 3, lock_ms - 1, lock_ms, 2 * lock_ms])
        if wait >= lock_ms and self._draw.random() < 0.7:
            for owned in self._acquired.values():
                owned.clear()
        return {"op": "advance", "ms": wait}

    def _answer(self) -> Json:
        waiting = self._state["waiting"]
        if not waiting:
            return self._advance() if self._draw.random() < 0.2 else self._acknowledge()
        draw = self._draw
        error = "NONE" if draw.random() < 0.7 else draw.choice(ERRORS)
        return {"op": "answer", "index": draw.randrange(waiting), "error": error}

    def _persister(self) -> Json:
        draw = self._draw
        if draw.random() < self._lateness:
            return {"op": "persister", "error": None}
        error = "NONE" if draw.random() < 0.85 else draw.choice(ERRORS)
        return {"op": "persister", "error": error}

    def _release(self) -> Json:
        member = self._draw.choice(self._members)
        self._acquired[member].clear()
        return {"op": "release", "member": member, "id": self._number}

    def _log_start(self) -> Json:
        draw = self._draw
        offset = self._state["start"] + draw.choice([-1, 1, 2, 5, 12, 40])
        self._log.delete_before(offset)
        return {"op": "logStart", "offset": offset}

    def _compact(self) -> Json:
        self._log.compact(self._state["end"])
        return self._acquire()

    def _lock(self) -> Json:
        draw = self._draw
        return {"op": draw.choice(["lock", "unlock"]), "fetch": draw.randrange(3)}

    def _change_settings(self) -> Json:
        self._settings = self._new_settings()
        return {"op": "settings", "settings": self._settings}

    def _change_letters(self) -> Json:
        draw = self._draw
        enabled = draw.random() < 0.8
        return {"op": "letters", "enabled": enabled, "held": draw.random() < 0.5}

    def _answer_letter(self) -> Json:
        posting = self._state["posting"]
        if not posting:
            return self._acknowledge()
        draw = self._draw
        return {"op": "letter", "index": draw.randrange(posting), "fails": draw.random() < 0.3}

    def _odd(self) -> Json:
        if self._is_near_end and self._draw.random() < 0.3:
            return {"op": "fence"}
        return {"op": "initialize", "id": self._number}


def comparable(answer: Json) -> Json:
    """An answer without what Kafka takes from the machine's clock, and without words for people.

    Kafka writes a state batch for each record of a split batch; the share coordinator joins them.
    """
    done = [
        [_TIMESTAMP.sub("timestamp", told) if isinstance(told, str) else told for told in one]
        for one in answer["done"]
    ]
    writes = [[*write, _joined(batches)] for *write, batches in answer["writes"]]
    others = {name: value for name, value in answer.items() if name != "why"}
    return others | {"done": done, "writes": writes}


def _joined(batches: list[list[int]]) -> list[list[int]]:
    """State batches with neighbours of one state as one."""
    joined: list[list[int]] = []
    for first, last, *state in batches:
        if joined and joined[-1][1] == first - 1 and joined[-1][2:] == state:
            joined[-1][1] = last
        else:
            joined.append([first, last, *state])
    return joined
