"""Races: what is raced, by whom, and how it is timed. Commands print what comes out."""

from dkrls_cli.bench.paper.data import paper_3d, paper_3d_split

__all__ = ["paper_3d", "paper_3d_split"]
