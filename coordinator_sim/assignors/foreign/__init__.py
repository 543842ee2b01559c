"""Assignors from outside this package: Python callables and processes that speak JSON lines.

Each is asked with the group's topics and members, and answers with the partitions of each member.
Whatever an answer breaks ends the run with one line that names the assignor, member and partition.
"""
