"""A fault of the core or of a client as data: a line of its source, and what replaces it."""

from msgspec import Struct


class Exhibit(Struct, frozen=True):
    """One seeded fault.

    Args:
        exhibit_id: A bug of Kafka by its number, or a fault that none of them is, in words.
        story: What goes wrong, in one sentence.
        module: The module whose source is changed.
        before: The text to replace; it stands once in the module. Empty for no fault.
        after: What stands there instead.
        noticed_by: A case that fails then: a coordinator's with its profile, `PSYN-001 as 4.4`, a
            client's or an assignor's by its id, `C-JOIN-08`, or `scenario connect-no-delay`.
    """

    exhibit_id: str
    story: str
    module: str
    before: str
    after: str
    noticed_by: str
