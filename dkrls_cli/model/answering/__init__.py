"""Rules of answering: land, coordinates outside the training range, and bounds of values."""
