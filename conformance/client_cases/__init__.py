"""Requirements on clients of a group, as cases played on this project's own ports.

One module per area. A case is a function of a `Bench`, which makes ports and compares results.
"""
