"""Failure detection: what has to be said about sources, queues and sinks while an engine runs, without being asked.

Law: an alert says what was expected and what was seen. It is raised once, stands as long as it is true, and clears by
itself. Looking costs a round some microseconds and changes nothing about it.
"""
