"""Endpoints that the suite starts itself: processes under a watchdog, and cases played on them."""
