"""A fault of the core as data: one line of its source, and what to put in its place."""

from msgspec import Struct


class Exhibit(Struct, frozen=True):
    """One seeded fault.

    Args:
        exhibit_id: A bug of Kafka by its number, or a fault that none of them is, in words.
        story: What goes wrong, in one sentence.
        module: The module whose source is changed.
        before: The text to replace; it stands once in the module. Empty for no fault.
        after: What stands there instead.
        noticed_by: A case that fails then, and as which profile: `PSYN-001 as 4.4`.
    """

    exhibit_id: str
    story: str
    module: str
    before: str
    after: str
    noticed_by: str
