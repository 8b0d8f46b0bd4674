"""Which missing cells of a grid are filled."""
