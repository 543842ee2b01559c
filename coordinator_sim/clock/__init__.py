"""Time as the core and its drivers see it: the clock interface and the timer heap they share."""
