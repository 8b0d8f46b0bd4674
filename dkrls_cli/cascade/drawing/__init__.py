"""Draws of random fields: roots of covariances along one axis, and fields over all axes."""
