"""Reproduce the paper's tables, figures and statements, each by its label.

An artefact (``finding.py``) lists the measurements that it needs (``task.py``), and shows them once
they exist.  ``running.py`` runs the missing ones; ``report.py`` writes the report.
"""

import importlib

from opboost.errors import ParameterError
from opboost_lab.reproduce.finding import Artefact

MODULES: dict[str, str] = {
    "tab:dataset": "tab_dataset",
    "fig:distribution": "fig_distribution",
    "fig:split_prob": "fig_split_prob",
    "fig:adult_kendall": "kendall_figures",
    "fig:syn10_kendall": "kendall_figures",
    "fig:rq_salaries": "range_figures",
    "fig:rq_uniform": "range_figures",
    "fig:adult_class": "learning_figures",
    "fig:pendigits_class": "learning_figures",
    "fig:plant_regress": "learning_figures",
    "fig:casp_regress": "learning_figures",
    "tab:umeng_opxgboost": "tab_umeng_opxgboost",
    "tab-computation-ope": "tab_computation_ope",
    "tab:op-prob-t": "tab_op_prob_t",
    "fig:order preserving probability": "fig_order_preserving_probability",
    "tab:opxgboost": "tab_opxgboost",
    "tab:comun_perform": "tab_comun_perform",
    "tab:comp_perform": "tab_comp_perform",
}
"""The paper's labels of tables and figures, in its order, and the module of each."""

STATEMENTS: dict[str, str] = {
    "cor:maximum_gain": "cor_maximum_gain",
    "split requests": "split_requests",
    "crossover of alpha": "crossover_of_alpha",
    "even or sampled": "even_or_sampled",
    "complexity": "complexity",
    "regularisation": "regularisation",
    "attacks": "attacks",
}
"""Statements in the paper's text, and the module of each."""


def artefact(label: str) -> Artefact:
    """Return the artefact of a label; case, blanks and punctuation do not matter."""
    known = {_plain(k): (k, m) for k, m in (MODULES | STATEMENTS).items()}
    if _plain(label) not in known:
        names = ", ".join(repr(n) if " " in n else n for n in MODULES | STATEMENTS)
        raise ParameterError(f"No table or figure is called {label!r}. There are: {names}.")
    name, file = known[_plain(label)]
    module = importlib.import_module(f"{__name__}.artefacts.{file}")
    several: tuple[Artefact, ...] = getattr(module, "ARTEFACTS", None) or (module.ARTEFACT,)
    return next(found for found in several if found.label == name)


def _plain(label: str) -> str:
    return "".join(c for c in label.lower() if c.isalnum())
