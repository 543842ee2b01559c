"""Faults seeded into core and clients, one line each, and which case finds each of them."""
