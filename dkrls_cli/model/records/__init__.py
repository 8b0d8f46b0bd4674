"""Models as a model file stores them: plain values for the header, and named arrays."""
