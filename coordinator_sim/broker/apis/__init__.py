"""The APIs that administer a cluster: topics, settings, quotas, ACLs, features, replicas."""
