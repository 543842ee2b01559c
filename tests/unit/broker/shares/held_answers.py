"""What a share partition asks, answered at once or when a test says so."""

from collections.abc import Callable

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.shares.dead_letters import DeadLetters
from coordinator_sim.broker.shares.persister import (
    ReadState,
    StateRead,
    StateSummary,
    StateWritten,
    WriteState,
)
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.coordinator.modern.share.persister import (
    DeleteState,
    InitializeState,
    PersisterAnswer,
)
from coordinator_sim.kafka.errors import ErrorCode


class HeldPersister:
    """A share coordinator that answers at once, or when it is told to, and remembers nothing."""

    def __init__(self, stored: StateRead) -> None:
        self.error: ErrorCode | None = ErrorCode.NONE
        self.writes: list[object] = []
        self.written: list[WriteState] = []
        self._stored = stored
        self._held: list[Callable[[ErrorCode], None]] = []

    @property
    def waiting(self) -> int:
        """How many wait for an answer."""
        return len(self._held)

    def answer(self, index: int, error: ErrorCode) -> None:
        """Answer one of those that wait."""
        self._held.pop(index)(error)

    def _next(self, then: Callable[[ErrorCode], None]) -> None:
        if self.error is None:
            self._held.append(then)
        else:
            then(self.error)

    def read(self, request: ReadState, then: Callable[[StateRead], None], now: Instants) -> None:
        """Answer what is stored, or an error."""
        del request, now

        def answered(error: ErrorCode) -> None:
            failed = StateRead(error=error, message=f"no {error.name}")
            then(self._stored if error is ErrorCode.NONE else failed)

        self._next(answered)

    def write(
        self, request: WriteState, then: Callable[[StateWritten], None], now: Instants
    ) -> None:
        """Keep what is written for the answer of the command."""
        del now
        self.written.append(request)
        batches = [
            [one.first_offset, one.last_offset, one.delivery_state, one.delivery_count]
            for one in request.batches
        ]
        self.writes.append(
            [
                request.state_epoch,
                request.leader_epoch,
                request.start_offset,
                request.delivery_complete_count,
                batches,
            ]
        )

        def answered(error: ErrorCode) -> None:
            then(StateWritten(error, None if error is ErrorCode.NONE else f"no {error.name}"))

        self._next(answered)

    def initialize(
        self, request: InitializeState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """No share partition asks for it."""
        raise NotImplementedError

    def delete(
        self, request: DeleteState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """No share partition asks for it."""
        raise NotImplementedError

    def summary(
        self, request: ReadState, then: Callable[[StateSummary], None], now: Instants
    ) -> None:
        """No share partition asks for it."""
        raise NotImplementedError


class HeldLetters:
    """A queue for dead letters that takes them at once, or when it is told to."""

    def __init__(self) -> None:
        self.enabled = False
        self.is_held = False
        self.taken: list[object] = []
        self._held: list[Callable[[Instants], None]] = []

    @property
    def waiting(self) -> int:
        """How many letters wait."""
        return len(self._held)

    def answer(self, index: int, now: Instants) -> None:
        """End one of those that wait; Kafka goes on alike, however that is."""
        self._held.pop(index)(now)

    def is_enabled(self, group_id: str) -> bool:
        """Whether it is on."""
        return self.enabled and group_id == "g"

    def enqueue(
        self, letters: DeadLetters, then: Callable[[Instants], None], now: Instants
    ) -> None:
        """Keep what is taken for the answer of the command."""
        self.taken.append(
            [letters.first_offset, letters.last_offset, letters.delivery_count, letters.cause.name]
        )
        if self.is_held:
            self._held.append(then)
        else:
            then(now)

    def stop(self) -> None:
        """No test stops a broker."""
        raise NotImplementedError


class ScriptedOffsets:
    """A log's offsets by what is looked for; None has none."""

    def __init__(self, found: dict[str, int | None]) -> None:
        self._found = found

    def earliest_offset(self) -> int | Refusal | None:
        """The offset of `earliest`."""
        return self._found["earliest"]

    def latest_offset(self) -> int | Refusal | None:
        """The offset of `latest`."""
        return self._found["latest"]

    def offset_for_timestamp(self, timestamp_ms: int) -> int | Refusal | None:
        """The offset of any timestamp."""
        del timestamp_ms
        return self._found["timestamp"]
