"""Steps of a solve: products with the system of equations."""
