"""How the data of a cascade is stored: as few numbers as a tolerance allows."""
