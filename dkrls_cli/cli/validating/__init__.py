"""Steps of ``dkrls validate``: models and hold-outs that are measured, and what is reported."""
