"""Programs that drive one client each, as `clients/driver.py` tells."""
