"""Requests and responses as bytes and as JSON: readers and writers compiled from the schemas.

The package has no behaviour: a decoder raises `WireFormatError`, and an encoder fails only on
values that its format cannot hold.
"""
