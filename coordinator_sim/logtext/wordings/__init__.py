"""The table of log lines: each is one row, which the reader and the writer share."""
