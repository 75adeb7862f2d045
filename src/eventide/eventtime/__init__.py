"""The time core: how far time has come. Pure Python and NumPy; no engine, no files, and the clock is an argument.

`heartbeat` has the law and the interfaces, `arrivals` what a policy sees of a round. A module of
`policies` is one policy, one wrapper around policies, or one part of them, and states its law in its first lines;
`early` has prods and when they are due, `scheduling` which operator runs by which heartbeats.
"""
