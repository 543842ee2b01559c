"""Streams groups of KIP-1071: records first, applied by their replay alone.

What others ask of such a group (offsets, describe, deletion) is here too;
`coordinator/modern/consumer` is the same for consumer groups, and what is the same is imported
from there.
"""
