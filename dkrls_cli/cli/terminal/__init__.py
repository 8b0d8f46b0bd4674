"""What commands draw: tables, and progress of long work. Rich is imported only to draw."""
