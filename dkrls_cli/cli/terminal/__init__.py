"""Drawing on a terminal: tables, and progress of long work. Rich is imported only to draw."""
