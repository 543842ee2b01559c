"""The internal topics of a Connect cluster: a log read to its end, three stores on it."""
