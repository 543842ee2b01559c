"""Client-side assignors, identical to Java's to the last list order.

Pure functions and small machines over decoded subscriptions; bytes are `wire`'s.
"""
