"""Requirements on frames themselves: versions, and bytes that are no request.

A script speaks of requests whose versions do not matter. Here they are the matter: each case is a
function that sends frames of its own to a broker behind a socket.
"""
