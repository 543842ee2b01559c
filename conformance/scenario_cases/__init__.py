"""What must be seen when a scenario of the catalogue runs, as cases.

A case is a function of `Seen`, the run of its scenario. Every scenario has one at least.
"""
