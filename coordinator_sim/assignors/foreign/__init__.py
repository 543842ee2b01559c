"""Assignors from outside this package: Python callables, processes and Java classes.

Each is asked with the group's topics and members, and answers with the partitions of each member.
Whatever an answer breaks ends the run with one line that names the assignor, member and partition.
"""
