"""An online upgrade of a group under load: real members, each record counted, any broker."""
