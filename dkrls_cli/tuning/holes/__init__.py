"""Error bars in holes: where holes are placed once more, and what that tells of their cells."""
