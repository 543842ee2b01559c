"""Test data of the suite itself: histories that are wrong on purpose.

Each breaks one invariant, and exactly the checker of that invariant must find it.
"""
