"""The text log that a broker of a profile would write of what a trace tells."""
