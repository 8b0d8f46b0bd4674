"""Hypothesis draws the same examples in every run: a red test is red for everybody."""

from hypothesis import settings

settings.register_profile("dkrls", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("dkrls")
