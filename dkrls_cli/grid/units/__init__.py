"""Units of values as files write them."""
