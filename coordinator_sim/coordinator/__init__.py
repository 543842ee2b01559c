"""The broker's group coordinator: classic groups, offsets and the offsets log.

Pure: time and context come in as arguments, what leaves is a `CoordinatorResult`. No bytes are
decoded here, save the consumer subscription that a broker really parses.
"""
