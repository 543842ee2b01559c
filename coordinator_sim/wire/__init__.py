"""Bytes and the plain data they stand for.

Requests and responses of the group APIs (`frames`, from the tables in `schemas`), record batches
and segments of the offsets log, embedded consumer and Connect blobs.

No behaviour: a decoder raises `WireFormatError`, an encoder fails only on what its format cannot
say.
"""
