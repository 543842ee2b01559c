"""Runs on disk: the events of a trace, and the ownership of resources computed from them."""
