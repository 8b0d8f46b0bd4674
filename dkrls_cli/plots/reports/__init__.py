"""Pictures of fits and validations, and the page that tells of a validation."""
