from collections.abc import Generator

import pytest
import simpy

from coordinator_sim.clock import Alarmed
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.scenario import Choices


class Bell(Alarmed):
    """Notes the instants at which it rings."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.rung: list[int] = []

    def _on_alarm(self) -> None:
        self.rung.append(self._clock.now_us)


def test_simultaneous_callbacks_fire_first_in_first_out() -> None:
    """Callbacks of one instant fire in the order they were asked for."""
    environment = Environment()
    fired: list[str] = []
    for name in ("a", "b", "c"):
        environment.call_at(5, lambda name=name: fired.append(name))

    environment.run_until(5)

    assert fired == ["a", "b", "c"]


def test_shuffled_ties_are_drawn_from_the_choices() -> None:
    """With tie choices another order is possible, and the tape tells which."""
    orders = []
    for seed in range(5):
        environment = Environment(Choices(seed))
        fired: list[int] = []
        for number in range(6):
            environment.call_at(5, lambda number=number, fired=fired: fired.append(number))
        environment.run_until(5)
        orders.append(tuple(fired))

    assert len(set(orders)) > 1
    assert all(sorted(order) == list(range(6)) for order in orders)


def test_the_clock_stands_at_the_end_of_a_run() -> None:
    """A run to an instant without events still takes the clock there, and fires nothing later."""
    environment = Environment()
    fired: list[int] = []
    environment.call_at(11, lambda: fired.append(11))

    environment.run_until(10)

    assert environment.now_us == 10
    assert fired == []


def test_simpy_processes_run_beside_callbacks() -> None:
    """A generator process of simpy sees the same integer clock."""
    environment = Environment()
    seen: list[int] = []

    def story() -> Generator[simpy.Event, None, None]:
        yield environment.timeout(3)
        seen.append(environment.now)
        yield environment.timeout(4)
        seen.append(environment.now)

    environment.process(story())
    environment.call_at(5, lambda: seen.append(environment.now_us))
    environment.run_until(10)

    assert seen == [3, 5, 7]


def test_simpy_run_until_an_instant_works() -> None:
    """Simpy's own `run` drives the same queue."""
    environment = Environment()
    seen: list[int] = []
    environment.call_at(5, lambda: seen.append(environment.now_us))

    environment.run(until=6)

    assert (seen, environment.now) == ([5], 6)


def test_a_failed_event_that_nobody_handles_ends_the_run() -> None:
    """An exception of a simpy process is not swallowed."""
    environment = Environment()

    def story() -> Generator[simpy.Event, None, None]:
        yield environment.timeout(1)
        raise ValueError("broken story")

    environment.process(story())

    with pytest.raises(ValueError, match="broken story"):
        environment.run_until(10)


@pytest.mark.parametrize(
    ("set_at", "rung_at"),
    [
        pytest.param([(0, 5), (0, 9)], 9, id="moved later"),
        pytest.param([(0, 9), (0, 5)], 5, id="moved earlier"),
        pytest.param([(0, 5), (0, None), (6, 8)], 8, id="switched off and set again"),
        pytest.param([(10, 3)], 10, id="set in the past"),
    ],
)
def test_alarm_rings_once_at_the_last_instant_set(
    set_at: list[tuple[int, int | None]], rung_at: int
) -> None:
    """At each instant it is set to another, or off; a deadline that has passed is due at once."""
    environment = Environment()
    bell = Bell(environment)

    for now, alarm in set_at:
        environment.run_until(now)
        if alarm is None:
            bell.switch_alarm_off()
        else:
            bell.set_alarm(alarm)
    environment.run_until(20)

    assert bell.rung == [rung_at]
