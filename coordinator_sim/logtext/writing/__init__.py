"""Trace events to the log lines that a broker of a profile would write."""
