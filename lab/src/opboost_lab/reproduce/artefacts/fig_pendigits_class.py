"""fig:pendigits_class: GBDT for ten classes, by ε."""

from __future__ import annotations

from opboost_lab.reproduce.learning_figure import learning_figure

ARTEFACT = learning_figure("fig:pendigits_class", "GBDT models of Pen-digits, by ε", "Pen-digits")
