"""The round: the clock tick of the engine, step by step."""
