"""Ports of the Java clients' group coordinators, without I/O.

A port is told the time and what arrived, and answers with effects (`effects`). It opens no
socket and reads no clock. The broker side is never imported here.
"""
