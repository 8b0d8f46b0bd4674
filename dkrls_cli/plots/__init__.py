"""Pictures: the only folder, beside the pictures of races, that draws with matplotlib."""
