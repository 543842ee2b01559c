"""The transaction coordinator of a served cluster: states, their log, markers, producer ids, APIs.

`sim.transactions` has the smaller part that the simulator without a served cluster needs.
"""
