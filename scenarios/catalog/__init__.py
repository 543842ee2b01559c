"""The catalogue: one module a story, each with `SCENARIO`."""
