"""Expected results of the catalogue's scenarios, as cases.

A case is a function of `Seen`, the run of its scenario. Every scenario has at least one.
"""
