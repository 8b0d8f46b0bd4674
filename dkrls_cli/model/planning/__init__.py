"""The plan of a fit: settings, resolved for the axes of a grid."""
