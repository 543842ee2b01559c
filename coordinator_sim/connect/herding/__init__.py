"""The herder: its thread, its tick, and what may be asked of it, a module each."""
