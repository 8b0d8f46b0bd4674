"""What a step of a solve takes: products with the system of equations."""
