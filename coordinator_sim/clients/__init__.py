"""Ports of the Java clients' group coordinators, without I/O.

The driver tells a port the time and what arrived; the port returns effects (`effects`). A port
opens no socket and reads no clock. The broker side is never imported here.
"""
