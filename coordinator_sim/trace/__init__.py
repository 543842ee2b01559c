"""The trace of groups' events: its events, their Parquet and JSON Lines forms, and its digest.

Every source (simulation, production log, capture) has the same columns; see `events`.
Nothing here decodes assignment bytes: `runs` does, with `messages.embedded`.
"""
