"""Drivers of the pure rooms in virtual time: simpy clock, network, faults, processes, runner.

No protocol logic lives here; a driver that needs an if about group state lacks a verb.
"""
