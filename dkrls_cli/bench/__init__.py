"""Races between D-KRLS and other methods: data, methods, timing and results.

The commands of ``dkrls bench`` print the results; nothing here prints.
"""

from dkrls_cli.bench.paper.published import paper_3d, paper_3d_split

__all__ = ["paper_3d", "paper_3d_split"]
