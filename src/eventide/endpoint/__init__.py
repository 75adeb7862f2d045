"""A running engine, asked from other processes: a small HTTP server on this machine, and a client for it.

Law: whoever asks must have the token, which only the user of the engine can read. What is asked is data: a name,
values, times; no path, no SQL and no code from outside is ever used. Nothing that a client does or leaves undone ends
the server, holds up a round, or keeps others from asking for longer than a few seconds.
"""
