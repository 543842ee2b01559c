"""The trace of what groups did: events, their Parquet and JSON Lines form, and their digest.

Every source (simulation, production log, capture) leaves the same columns; see `events`.
Nothing here decodes assignment bytes: that needs `wire` and lives in `ingest`.
"""
