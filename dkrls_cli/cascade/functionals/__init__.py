"""Functionals of a level: derivatives and means over intervals in place of values."""
