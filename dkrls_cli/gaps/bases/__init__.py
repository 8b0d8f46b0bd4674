"""Bases of fields that are no product of one basis per axis."""
