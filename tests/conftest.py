"""Hypothesis for the whole suite: no deadline, since how long an example takes on a busy machine proves nothing."""

from hypothesis import settings

settings.register_profile("eventide", deadline=None, print_blob=True)
settings.load_profile("eventide")
