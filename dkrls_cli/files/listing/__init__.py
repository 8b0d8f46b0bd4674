"""What files hold, told by their metadata alone: for the completion of command lines."""
