"""Answers of grids beyond memory: blocks of answers from boxes of the data, one after the other."""
