"""How the suite speaks to endpoints: sockets, security, and the codec of another library, kio.

Nothing here knows the codec of this project, so that one misreading cannot hide on both sides.
"""
