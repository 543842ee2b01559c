"""Cases as short scripts: the language, its stage, and what a reply says in it."""
