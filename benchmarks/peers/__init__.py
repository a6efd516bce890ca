"""One file a peer, all with the same skeleton; each runs in an environment of its own."""
