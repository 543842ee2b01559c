"""Log lines to trace events. Pure: callers read files."""
