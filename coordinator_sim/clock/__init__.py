"""The clock interface, and the single alarm that every driver arms on it."""

from coordinator_sim.clock.clock import Action, Alarmed, Clock

__all__ = ["Action", "Alarmed", "Clock"]
