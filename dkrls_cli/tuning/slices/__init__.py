"""Settings of one level, chosen by how well slices that are left out are predicted."""
