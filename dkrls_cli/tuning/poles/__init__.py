"""Whether latitudes go on across the poles, and with which sign."""
