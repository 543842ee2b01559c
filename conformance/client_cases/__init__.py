"""What clients of a group must do, as cases played on this project's own ports.

One module an area. A case is a function of a `Bench`, which makes ports and compares what it sees.
"""
