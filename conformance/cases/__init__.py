"""The cases, one module an area: `CASES` of each is read by the registry."""
