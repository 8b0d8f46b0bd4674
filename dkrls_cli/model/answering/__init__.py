"""What is answered and what stays missing: land, coordinates outside, and bounds of values."""
