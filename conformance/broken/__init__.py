"""What the suite itself is tested against: histories that are wrong on purpose.

Each breaks one invariant, and exactly the checker of that invariant must find it.
"""
