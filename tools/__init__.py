"""Tools of the workshop: recording real clients, and reading what was recorded."""
