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


def test_alarm_rings_at_the_last_instant_set() -> None:
    """An alarm moved later does not ring early, and rings once."""
    environment = Environment()
    bell = Bell(environment)

    bell.set_alarm(5)
    bell.set_alarm(9)
    environment.run_until(20)

    assert bell.rung == [9]


def test_alarm_moved_earlier_rings_once() -> None:
    """The call asked for before is forgotten when the alarm moved ahead of it."""
    environment = Environment()
    bell = Bell(environment)

    bell.set_alarm(9)
    bell.set_alarm(5)
    environment.run_until(20)

    assert bell.rung == [5]


def test_alarm_switched_off_stays_silent_until_set_again() -> None:
    """Off means off, whatever calls the clock still owes."""
    environment = Environment()
    bell = Bell(environment)

    bell.set_alarm(5)
    bell.switch_alarm_off()
    environment.run_until(6)
    bell.set_alarm(8)
    environment.run_until(20)

    assert bell.rung == [8]


def test_alarm_set_in_the_past_rings_now() -> None:
    """A deadline that has passed is due at once."""
    environment = Environment()
    bell = Bell(environment)
    environment.run_until(10)

    bell.set_alarm(3)
    environment.run_until(10)

    assert bell.rung == [10]
