"""Dry runs on recorded data: how disordered it is, and what each policy would have done with it."""
