"""Rates, buckets and precedence of quotas: what Kafka's own classes answered is reproduced."""

from pathlib import Path

import pytest

from coordinator_sim.broker.metadata.changes import QuotaEntity
from coordinator_sim.broker.quotas.client_quotas import (
    CLIENT_ID,
    SENSOR_EXPIRY_MS,
    USER,
    ClientQuotaManager,
    ControllerMutationQuota,
    QuotaLimits,
    Sensors,
)
from coordinator_sim.broker.quotas.measures import LARGEST_LONG, Rate, TokenBucket, Windows

GOLDEN = Path(__file__).parent / "golden"
START_MS = 1_700_000_000_000
KEYS = {"produce": "producer_byte_rate", "mutation": "controller_mutation_rate"}
LARGEST_INT = (1 << 31) - 1


def entity_of(user: str, client_id: str) -> QuotaEntity:
    """The entity that a program names: `-` for no part, `*` for the default."""
    parts = ((CLIENT_ID, client_id), (USER, user))
    return tuple((kind, None if name == "*" else name) for kind, name in parts if name != "-")


class Program:
    """Runs the commands of a recorded program on our managers; see golden/README.md."""

    def __init__(self, windows: Windows) -> None:
        self.now_ms = START_MS
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.limits = {name: QuotaLimits(key, self.quotas) for name, key in KEYS.items()}
        self.produce = ClientQuotaManager(self.limits["produce"], windows)
        self.buckets = Sensors(self.limits["mutation"], windows, TokenBucket)

    def run(self, command: str) -> str:
        """The answer to one command; empty where it has none."""
        match command.split(" "):
            case ["wait", ms]:
                self.now_ms += int(ms)
            case ["quota", name, user, client_id, value]:
                self._set(name, entity_of(user, client_id), value)
            case ["use", user, client_id, size]:
                return str(self.produce.use(user, client_id, float(size), now_ms=self.now_ms))
            case ["unuse", user, client_id, size]:
                self.produce.give_back(user, client_id, float(size), self.now_ms)
            case ["most", user, client_id]:
                most = self.produce.most_at_once(user, client_id, self.now_ms)
                return str(int(min(most, LARGEST_INT)))
            case [kind, user, client_id, *permits]:
                return self._mutate(user, client_id, permits, is_strict=kind == "strict")
        return ""

    def _set(self, name: str, entity: QuotaEntity, value: str) -> None:
        values = self.quotas.setdefault(entity, {})
        if value == "-":
            values.pop(KEYS[name], None)
        else:
            values[KEYS[name]] = float(value)
        self.limits[name].changed()

    def _mutate(self, user: str, client_id: str, permits: list[str], *, is_strict: bool) -> str:
        bucket, limit = None, None
        if self.limits["mutation"].is_set:
            bucket, limit = self.buckets.of(user, client_id, self.now_ms)
        bound = LARGEST_LONG if limit is None else limit
        quota = ControllerMutationQuota(bucket, bound, is_strict=is_strict)
        found = ["ok" if quota.accepts(int(each), self.now_ms) else "no" for each in permits]
        return " ".join([*found, str(quota.throttle_time_ms(self.now_ms))])


@pytest.mark.parametrize(("count", "size_s"), [(11, 1), (2, 1), (3, 5)])
def test_every_recorded_throttle_time_is_kafkas(count: int, size_s: int) -> None:
    """Random programs of quotas at all levels: no answer of Kafka 4.3.1's managers differs."""
    program = Program(Windows(count=count, window_ms=size_s * 1000))
    lines = (GOLDEN / f"programs-4.3.1-{count}-{size_s}.txt").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        command, _, answer = line.partition(" = ")
        assert (number, command, program.run(command)) == (number, command, answer)
    assert len(lines) > 600


@pytest.mark.parametrize(("release", "overlapping"), [("2.8.2", False), ("4.3.1", True)])
def test_every_recorded_rate_is_kafkas(release: str, *, overlapping: bool) -> None:
    """The oldest windows count longer from 3.8 on; rates are equal to the last bit."""
    rate = Rate(Windows(keeps_overlapping=overlapping))
    now_ms = START_MS
    for line in (GOLDEN / f"rates-{release}-11-1.txt").read_text().splitlines():
        command, _, answer = line.partition(" = ")
        match command.split(" "):
            case ["wait", ms]:
                now_ms += int(ms)
            case ["use", value]:
                rate.record(float(value), now_ms)
                per_second, span_ms = answer.split(" ")
                assert (rate.per_second(now_ms), rate.span_ms(now_ms)) == (
                    float(per_second),
                    int(span_ms),
                )


def test_ten_times_the_quota_in_an_empty_window_waits_for_the_other_ten() -> None:
    """1 byte a second, 20 bytes at once: 10 windows count, so 10 s more make the rate 1."""
    quotas = {((USER, "alice"),): {"producer_byte_rate": 1.0}}
    manager = ClientQuotaManager(QuotaLimits("producer_byte_rate", quotas), Windows())
    assert manager.use("alice", "a", 20, now_ms=START_MS) == 10_000
    assert manager.use("bob", "a", 20, now_ms=START_MS) == 0


def test_clients_idle_for_an_hour_are_forgotten() -> None:
    """A thousand clients of yesterday leave no state behind when another one comes."""
    quotas = {((CLIENT_ID, None),): {"producer_byte_rate": 1.0}}
    sensors = Sensors(QuotaLimits("producer_byte_rate", quotas), Windows(), Rate)
    for number in range(1_000):
        sensors.of("alice", f"c{number}", START_MS)
    assert len(sensors) == 1_000
    sensors.of("alice", "late", START_MS + SENSOR_EXPIRY_MS + 1)
    assert len(sensors) == 1


def test_bucket_in_debt_is_full_again_after_an_idle_hour() -> None:
    """Kafka expires the sensor of an idle client, and with it what the client owes."""
    quotas = {((USER, "alice"),): {"controller_mutation_rate": 0.001}}
    sensors = Sensors(QuotaLimits("controller_mutation_rate", quotas), Windows(), TokenBucket)
    bucket, limit = sensors.of("alice", "a", START_MS)
    assert limit is not None
    bucket.record(100, limit, START_MS)
    assert bucket.throttle_time_ms(limit, START_MS) == 99_989_000
    later_ms = START_MS + SENSOR_EXPIRY_MS + 1
    bucket, _ = sensors.of("alice", "a", later_ms)
    assert bucket.throttle_time_ms(limit, later_ms) == 0


@pytest.mark.parametrize(
    ("bound", "throttle_ms"), [(5e-324, -1), (float("nan"), 0), (float("inf"), 0)]
)
def test_bound_that_is_no_ordinary_number_throttles_as_in_java(
    bound: float, throttle_ms: int
) -> None:
    """Math.round makes the largest long of infinity, whose lowest 32 bits are -1, and 0 of NaN."""
    rate, bucket = Rate(Windows()), TokenBucket(Windows())
    rate.record(1_000, START_MS)
    bucket.record(5, bound, START_MS)
    assert rate.throttle_time_ms(bound, START_MS) == throttle_ms
    assert bucket.throttle_time_ms(bound, START_MS) in {0, LARGEST_LONG}
