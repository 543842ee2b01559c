"""Drivers of the pure packages in virtual time: simpy clock, network, faults, processes, runner.

No protocol logic lives here; a driver that branches on group state lacks a verb.
"""
