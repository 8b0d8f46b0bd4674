"""What a fit tells while it runs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from shell import dkrls

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.cli.fitting.watching import choice_printer
from dkrls_cli.cli.report import Report
from dkrls_cli.grid.axes import axis_of
from dkrls_cli.tuning.candidates import Candidate, LevelChoice


def test_verbose_shows_how_every_kernel_did(globe: Path, tmp_path: Path) -> None:
    said = dkrls("fit", globe, "-o", tmp_path / "m.npz", "-v").stderr
    for dim in ("lat", "lon", "time"):
        assert f"{dim}: error on slices left out" in said
    assert said.count("matern52") > 20
    assert "###" in said


def test_settings_that_were_given_up_have_no_row_among_those_tried(capsys) -> None:
    kernels = [Kernel("gaussian", sigma) for sigma in (1.0, 2.0)]
    known, lost = Candidate(kernels[0], 0.1, 0.5), Candidate(kernels[1], 0.1, math.inf, reached=9.0)
    for choice, rows in ((LevelChoice(known, (known, lost)), 1), (LevelChoice(lost, (lost,)), 0)):
        print_choice = choice_printer(Report(verbose=True), [axis_of("x", [0.0, 1.0])])
        print_choice("x", replace(choice, measure="cells"))
        printed = capsys.readouterr().err
        assert "x: error on hidden cells, at the best ridge" in printed
        assert printed.count("gaussian") == rows
        assert ("every setting was given up" in printed) == (rows == 0)
