"""The edge around a group coordinator: rights, topics, shapes; and the simulator's data plane.

The package is pure: a driver carries time and messages, and every function returns values.
"""
