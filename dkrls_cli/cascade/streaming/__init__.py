"""Answers from parts of the data: which samples a row needs, and rows applied to them."""
