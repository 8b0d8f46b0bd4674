"""What commands that fit models share."""
