"""A compressed night of faults at a real broker, and how many of their causes are told rightly."""
