"""Commits and fetches of offsets, their records, expiry and deletion."""
