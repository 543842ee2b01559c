"""Expectations of a client's requests on the wire, by area; `registry.py` collects them."""
