"""Fault rules: which requests are mistreated on purpose, and how."""
