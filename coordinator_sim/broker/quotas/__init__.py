"""Client quotas: who may use how much, how use is measured, and for how long a client is muted."""
