"""Methods of other libraries that D-KRLS races against; the only place that imports them."""
