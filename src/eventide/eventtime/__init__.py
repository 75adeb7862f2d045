"""The time core: how far time has come. Pure Python and NumPy; no engine, no files, and the clock is an argument.

`heartbeat` has the law and the interfaces, `arrivals` what a policy sees of a round. Every other module is one policy,
one wrapper around policies, or one part of them, and states its law in its first lines.
"""
