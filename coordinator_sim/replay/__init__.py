"""An imported trace driven through the core, and how faithful the run was."""
