"""Online methods that take a step down the gradient with every sample."""
