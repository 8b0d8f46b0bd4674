"""What the header of a model file may say: checks of plain values, and the schema of the header."""
