"""What an engine tells others about its own work: traces of heartbeats, spans of rounds, and where results come from.

Law: nothing here changes a round or waits for one, and what nobody asked for costs nothing.
"""
