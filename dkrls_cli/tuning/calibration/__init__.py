"""Error bars of a chosen setting, calibrated on hidden cells."""
