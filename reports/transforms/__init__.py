"""Tables made of other tables: SQL that an engine runs; they know no session and no file."""
