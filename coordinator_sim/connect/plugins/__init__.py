"""Plugins of a worker: discovery by manifests, versions and aliases, and the standard ones."""
