"""The routes, one file a subject: they translate only."""
