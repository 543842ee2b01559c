"""The command line: one module a command; each imports its room inside."""
