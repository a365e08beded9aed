"""fig:plant_regress: GBDT for a regression, by ε."""

from __future__ import annotations

from opboost_lab.reproduce.learning_figure import learning_figure

ARTEFACT = learning_figure("fig:plant_regress", "GBDT models of Powerplant, by ε", "Powerplant")
