"""Learning to rank from ordered pairs."""
