"""fig:adult_class: GBDT for two classes, by ε."""

from __future__ import annotations

from opboost_lab.reproduce.learning_figure import learning_figure

ARTEFACT = learning_figure("fig:adult_class", "GBDT models of Adult, by ε", "Adult")
