"""fig:casp_regress: GBDT for a larger regression, by ε."""

from __future__ import annotations

from opboost_lab.reproduce.learning_figure import learning_figure

ARTEFACT = learning_figure("fig:casp_regress", "GBDT models of CASP, by ε", "CASP")
