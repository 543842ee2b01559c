"""A `serve` on a directory that is killed under load, again and again, and asked what it kept."""

import json
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Timer
from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import Fields, read_response_frame, request_frame
from tests.abuse.hostile_sockets import PATIENCE_S, read_answer, with_length

_TOPIC: Final = "acknowledged"
_VERSIONS: Final = {
    ApiKey.PRODUCE: 7,
    ApiKey.FETCH: 4,
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.OFFSET_COMMIT: 7,
    ApiKey.OFFSET_FETCH: 5,
}
_IN_FLIGHT: Final = 8
_SHORTEST_S: Final = 0.02
_LONGEST_S: Final = 0.4


class KilledServer:
    """Lives of one server on one directory.

    Attributes:
        produced: The number in the last acknowledged record, and in all before it; -1 for none.
        committed: The last acknowledged offset.
        acknowledged: Answers without an error, of all lives.
    """

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._random = Random(seed)  # noqa: S311 - tests
        self._next = self._next_commit = 0
        self.produced = self.committed = -1
        self.acknowledged = 0

    def live(self) -> None:
        """Start, check what was kept, and work until the kill comes at some moment."""
        process, port = self._start()
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as found:
                self._await_coordinator(found)
                self._check(found)
                delay_s = self._random.uniform(_SHORTEST_S, _LONGEST_S)
                timer = Timer(delay_s, process.kill)
                timer.start()
                with suppress(ConnectionError, AssertionError):
                    self._work(found)
                timer.join()
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _start(self) -> tuple[subprocess.Popen[bytes], int]:
        options = ("--port", "0", "--no-control", "--topics", f"{_TOPIC}:1")
        command = [sys.executable, "-m", "coordinator_sim", "serve", *options]
        process = subprocess.Popen(
            [*command, "--log-dir", str(self._directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        return process, int(ready["bootstrap"].rpartition(":")[2])

    def _await_coordinator(self, found: socket.socket) -> None:
        asked = {"key": "kept", "keyType": 0}
        until_s = time.monotonic() + PATIENCE_S
        while _ask(found, ApiKey.FIND_COORDINATOR, asked)["errorCode"] != 0:
            assert time.monotonic() < until_s
            time.sleep(0.01)

    def _check(self, found: socket.socket) -> None:
        """All that was acknowledged is there, once and in order."""
        numbers = self._read_all(found)
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > self.produced
        # What was written and not acknowledged may be there too: go on behind it.
        self._next = len(numbers)
        asked = {"groupId": "kept", "topics": [{"name": _TOPIC, "partitionIndexes": [0]}]}
        answer = _ask(found, ApiKey.OFFSET_FETCH, asked)
        (partition,) = answer["topics"][0]["partitions"]
        assert partition["errorCode"] == 0
        assert partition["committedOffset"] >= self.committed

    def _read_all(self, found: socket.socket) -> list[int]:
        numbers: list[int] = []
        while True:
            wanted = {"partition": 0, "fetchOffset": len(numbers), "partitionMaxBytes": 1 << 20}
            asked = {
                "replicaId": -1,
                "maxWaitMs": 0,
                "minBytes": 0,
                "topics": [{"topic": _TOPIC, "partitions": [wanted]}],
            }
            answer = _ask(found, ApiKey.FETCH, asked)
            (partition,) = answer["responses"][0]["partitions"]
            assert partition["errorCode"] == 0
            if not partition["records"]:
                return numbers
            for stored in SegmentReader(partition["records"]):
                numbers += [int(record.value or b"-1") for record in stored.decoded().records]

    def _work(self, found: socket.socket) -> None:
        """Produce and commit, some in flight, until the connection breaks."""
        sent: deque[tuple[ApiKey, int]] = deque()
        while True:
            while len(sent) < _IN_FLIGHT:
                self._send(found, sent)
            api, number = sent.popleft()
            _, answer = read_response_frame(api, _VERSIONS[api], read_answer(found))
            self._acknowledge(api, number, answer)

    def _send(self, found: socket.socket, sent: deque[tuple[ApiKey, int]]) -> None:
        if self._random.random() < 0.5:
            number = self._next
            self._next += 1
            size = self._random.choice((0, 0, 100, 3_000))
            record = Record(offset=0, timestamp_ms=1, key=b"k" * size, value=str(number).encode())
            batch = encode_record_batch(batch_of((record,)))
            data = {"name": _TOPIC, "partitionData": [{"index": 0, "records": batch}]}
            asked: Fields = {"acks": -1, "timeoutMs": 5_000, "topicData": [data]}
            api = ApiKey.PRODUCE
        else:
            number = self._next_commit
            self._next_commit += 1
            offset = {"partitionIndex": 0, "committedOffset": number}
            asked = {"groupId": "kept", "topics": [{"name": _TOPIC, "partitions": [offset]}]}
            api = ApiKey.OFFSET_COMMIT
        sent.append((api, number))
        found.sendall(with_length(_frame(api, asked)))

    def _acknowledge(self, api: ApiKey, number: int, answer: Fields) -> None:
        if api is ApiKey.PRODUCE:
            (partition,) = answer["responses"][0]["partitionResponses"]
            if partition["errorCode"] == 0:
                self.produced = number
        else:
            (partition,) = answer["topics"][0]["partitions"]
            if partition["errorCode"] == 0:
                self.committed = number
        self.acknowledged += partition["errorCode"] == 0


def _frame(api: ApiKey, fields: Fields) -> bytes:
    header = RequestHeader(
        api_key=api, api_version=_VERSIONS[api], correlation_id=3, client_id="kept"
    )
    return request_frame(header, fields)


def _ask(found: socket.socket, api: ApiKey, fields: Fields) -> Fields:
    found.sendall(with_length(_frame(api, fields)))
    _, answer = read_response_frame(api, _VERSIONS[api], read_answer(found))
    return answer
