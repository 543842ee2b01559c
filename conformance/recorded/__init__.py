"""Ports of clients beside recordings of the real clients."""
