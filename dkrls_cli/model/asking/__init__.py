"""Queries made of the questions of users, and the labels of the answers."""
