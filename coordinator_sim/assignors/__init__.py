"""Client-side assignors, identical to Java's down to the order of lists.

Pure functions and small machines over decoded subscriptions; `messages.embedded` handles bytes.
"""
