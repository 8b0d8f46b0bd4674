"""Training of the cascade of a labelled grid, complete or with missing cells."""
