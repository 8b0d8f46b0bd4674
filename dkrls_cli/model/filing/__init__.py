"""The header of a model file: checks of plain values, and the schema that it follows."""
