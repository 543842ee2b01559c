"""Which partition a group or a record's key belongs to."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"

_SHORT: Final = 256
"""Texts up to this length are read as numbers; Python reads none of more than 4300 digits."""

_DIGITS: Final = b"0123456789abcdefghijklmnopqrstu"
_HIGH_DIGITS: Final = bytes(_DIGITS[unit // 31 % 31] for unit in range(256))
_LOW_DIGITS: Final = bytes(_DIGITS[unit % 31] for unit in range(256))


def java_string_hash(text: str) -> int:
    """The signed 32-bit `String.hashCode` of a text, over its UTF-16 code units.

    Source: java.lang.String.hashCode; lone surrogates count as the unit they are.
    """
    value = 0
    if len(text) <= _SHORT and text.isascii():
        # The hash is the number in base 31 whose digits are the units. A unit is too large for a
        # digit, but not for two.
        units = text.encode("ascii") or b"\0"
        high, low = int(units.translate(_HIGH_DIGITS), 31), int(units.translate(_LOW_DIGITS), 31)
        value = (31 * high + low) & 0xFFFFFFFF
    elif text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(group_id: str, partition_count: int) -> int:
    """The offsets partition of a group: `abs(hash) % partition_count`, with abs(-2^31) = 0.

    Source: kafka trunk, clients Utils.abs and GroupCoordinatorService.partitionFor. A sign mask
    would give other results.
    """
    hashed = java_string_hash(group_id)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partition_count


def murmur2(data: bytes) -> int:
    """The 32-bit hash that Java's producer spreads keys by, unsigned.

    Source: kafka trunk, clients/.../common/utils/Utils.java, murmur2.
    """
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for index in range(0, whole, 4):
        word = int.from_bytes(data[index : index + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ word
    rest = data[whole:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition that Java's producer writes a key to.

    Source: kafka trunk, BuiltInPartitioner.partitionForKey.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
