"""Benchmarks: each prints rates or ratios measured in one run, beside a peer or a limit."""
