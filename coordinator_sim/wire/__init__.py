"""Bytes and the plain data they stand for.

Requests and responses of the group APIs (`frames`, from the tables in `schemas`), record batches
and segments of the offsets log, embedded consumer and Connect blobs.

The package has no behaviour: a decoder raises `WireFormatError`, and an encoder fails only on
values that its format cannot hold.
"""
