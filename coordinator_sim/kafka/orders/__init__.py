"""The orders in which the hash maps of Java and Scala hand out their keys."""
