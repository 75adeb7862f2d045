"""Which operator runs next, by which heartbeats, and which idle sources are asked."""
