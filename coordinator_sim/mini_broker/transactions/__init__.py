"""The transaction coordinator of a served cluster: states, their log, markers, producer ids, APIs.

What the simulator knows of transactions is in `broker.transactions`; this is the whole.
"""
