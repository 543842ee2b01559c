"""Production logs to trace events, and trace events to ownership. Pure: callers read files."""
