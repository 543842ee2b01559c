"""Scenario catalogue and strategies."""
