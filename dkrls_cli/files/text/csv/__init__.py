"""Text tables as rows and columns: opening, splitting, cells. The only door to CSV reading."""
