"""Bytes and the plain data they stand for: embedded consumer and Connect blobs.

No behaviour: a decoder raises `WireFormatError`, an encoder never fails on valid data.
"""
