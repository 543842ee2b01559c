"""Bytes inside JoinGroup and SyncGroup: subscriptions and assignments of consumers and workers."""
