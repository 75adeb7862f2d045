"""A running engine, or what is left of one, in a browser: time, plan, results, losses, and the engine itself.

Law: what is shown is that of one committed round. A page shows what the commands say, in the same words. Nothing is
computed while nobody looks, and while somebody does it takes at most a fiftieth of one core. Nothing from outside is
run or opened: names, values and times are data.
"""
