"""Tables, points and rows of answers as text: CSV and JSON lines."""
