"""The user's guide: one Markdown file per topic, read on the web and by ``dkrls help``."""
