"""Authentication and authorization: SASL, SCRAM, ACLs."""
