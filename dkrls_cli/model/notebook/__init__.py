"""How a model shows itself: one line of text, and what a notebook displays."""
