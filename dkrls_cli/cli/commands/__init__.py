"""One thin file per command: read the options, call the library once, print the result."""
