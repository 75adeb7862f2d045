"""From a script to an engine that runs it: settings, functions of the user, the engine."""
