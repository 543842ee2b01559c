"""One broker in virtual time, operated by verbs: what tests and transcripts drive. Pure."""
