"""Writing files: the one way by which this package puts anything on disk."""
