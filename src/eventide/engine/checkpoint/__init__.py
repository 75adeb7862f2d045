"""The checkpoint: records, intents and state files of an engine."""
