"""Changes to data files: cells replaced in a copy, whole or part by part, and members added."""
