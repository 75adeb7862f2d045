"""Files as streams of the local engine: listed, read from any place on, followed as they grow."""
