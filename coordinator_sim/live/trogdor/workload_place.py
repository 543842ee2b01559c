"""State shared by the clients of one workload: its threads, its log and its error reports."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.trogdor.client_settings import Native
from coordinator_sim.live.trogdor.workload_threads import WorkloadThreads, now_ms
from coordinator_sim.trogdor.workloads.clients import ClientFailed

T = TypeVar("T")

Log = Callable[[str], None]
"""Takes a line."""

DEFAULT_TIMEOUT_MS: Final = 60_000
"""Default of `max.block.ms` and of `default.api.timeout.ms`."""
SLICE_S: Final = 0.5
"""Longest call into librdkafka, so that a workload can be stopped."""

NOBODY_ANSWERS: Final = (
    KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's own errors begin so
    KafkaError._TRANSPORT,  # noqa: SLF001 - as above
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above
    KafkaError.REQUEST_TIMED_OUT,
)
"""Errors that another try may be without."""
NOT_THERE_YET: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
"""Errors of a topic that may come into being."""
_NO_LOGIN: Final = (
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - as above
    KafkaError._SSL,  # noqa: SLF001 - as above
)


class WorkloadPlace:
    """The process that a workload has for itself.

    Args:
        log: Takes lines for the operator.

    Attributes:
        threads: The workload's threads.
    """

    def __init__(self, log: Log) -> None:
        self.threads = WorkloadThreads()
        self._log = log
        self._logged: set[str] = set()
        self._lock = Lock()

    def made(self, native: Native, errors: "Errors", make: Callable[[dict[str, Any]], T]) -> T:
        """A client of librdkafka.

        Raises:
            ClientFailed: the settings are refused.
        """
        for name in native.left_out:
            self._log_once(name, f"{name} is left out: it means nothing to librdkafka")
        try:
            return make({**native.settings, "error_cb": errors.heard})
        except KafkaException as error:
            raise ClientFailed(text_of(error.args[0])) from None
        # A runtime error is a host without threads for it.
        except (TypeError, ValueError, RuntimeError) as error:
            raise ClientFailed(str(error)) from None

    def heard(self, error: KafkaError) -> None:
        """Log an error that no call was told of, the first of its kind."""
        self._log_once(error.name(), f"{error.name()}: {error.str()}")

    def failed(self, error: KafkaException) -> ClientFailed:
        """The failure that an exception is."""
        self.heard(error.args[0])
        return ClientFailed(text_of(error.args[0]))

    def partitions(
        self, client: Consumer | Producer, topic: str, until_ms: int
    ) -> tuple[TopicPartition, ...]:
        """The partitions of a topic; none where it is unknown.

        Raises:
            ClientFailed: no broker answers in time, or the topic is refused.
            Interrupted: the workload is being stopped.
        """
        # Ends because time goes on.
        while True:
            try:
                listed = self.threads.outside(partial(client.list_topics, topic, SLICE_S))
            except KafkaException as error:
                if error.args[0].code() not in NOBODY_ANSWERS or now_ms() >= until_ms:
                    raise self.failed(error) from None
                continue
            found = listed.topics[topic]
            if found.error is None:
                return tuple(TopicPartition(topic, number) for number in sorted(found.partitions))
            if found.error.code() in NOT_THERE_YET:
                return ()
            raise self.failed(KafkaException(found.error))

    def _log_once(self, key: str, line: str) -> None:
        with self._lock:
            is_new = key not in self._logged
            self._logged.add(key)
        if is_new:
            self._log(line)


class Errors:
    """Errors that a client reports outside its calls.

    Args:
        place: The process of the client.
    """

    def __init__(self, place: WorkloadPlace) -> None:
        self._place = place
        self.failure: str | None = None
        """Why no call helps any more; None while one may."""

    def heard(self, error: KafkaError) -> None:
        """Take an error; the first of its kind is logged."""
        self._place.heard(error)
        if is_final(error):
            self.failure = text_of(error)

    def check(self) -> None:
        """Go on only where that may help, as Java's clients raise a refused login at each call.

        Raises:
            ClientFailed: it does not.
        """
        if self.failure is not None:
            raise ClientFailed(self.failure)


def text_of(error: KafkaError) -> str:
    """The message of an error, or its name if it has none."""
    return error.str() or error.name()


def is_final(error: KafkaError) -> bool:
    """Whether no other try helps: a fatal error, or a refused login."""
    return error.fatal() or error.code() in _NO_LOGIN
