"""Faults seeded into the core, one line each, and which case of the suite finds each of them."""
