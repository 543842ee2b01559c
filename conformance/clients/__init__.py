"""Requirements on real clients, checked from outside by a scripted coordinator."""
