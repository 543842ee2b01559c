"""Kafka's group protocol as plain data: error codes, ids, messages, log records, profiles.

No bytes (see `wire`) and no behaviour beyond pure functions of these values.
"""
