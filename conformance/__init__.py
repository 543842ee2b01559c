"""The conformance suite: invariants checked over traces, by name."""
