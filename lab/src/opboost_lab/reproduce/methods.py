"""The mechanisms that the experiments compare, each at one of three kinds of level.

The paper compares at equal *nominal* ε.  At that level its own mechanisms do not protect equally
(docs/errata.md, 1, 2 and 25), and local differential privacy, whose ε is for any two values, is not
comparable.  So mechanisms are also compared at equal *exact* ε per cell, and those of local
differential privacy at equal *total*, ε·(R−L).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Literal

from scipy.optimize import brentq

from opboost.errors import ParameterError
from opboost.grid import Domain
from opboost.mechanisms import Mechanism, registry
from opboost_lab.reproduce.charts import Kind
from opboost_lab.reproduce.finding import Note, noted
from opboost_lab.reproduce.task import Json

Family = Literal[
    "Global-map", "Adj-map", "Local-map", "Clamp-map", "Piecewise", "GRR", "FederBoost"
]
Level = Literal["nominal", "exact", "total"]
LDP = ("Piecewise", "GRR", "FederBoost")

_KINDS = {"GRR": "randomized-response", "FederBoost": "randomized-response"}
"""The registry's kinds that differ from the paper's names in lower case."""


@dataclass(frozen=True, slots=True)
class Method:
    """A mechanism without grid and level; ``denoise`` says whether the label party denoises.

    >>> Method("Adj-map", theta=4, alpha=10).label
    'Adj-map θ=4 α=10'
    >>> Method("Global-map", at="exact").mechanism(Domain(1, 10), 0.64)
    GlobalMap(domain=Domain(L=1, R=10), epsilon=0.8746...)
    """

    family: Family
    theta: int | None = None
    alpha: float | None = None
    at: Level = "nominal"
    denoise: bool = False

    @property
    def label(self) -> str:
        """Its name in tables and figures."""
        parts: list[str] = [self.family]
        if self.theta is not None:
            parts.append(f"θ={self.theta}")
        if self.alpha is not None:
            parts.append(f"α={self.alpha:g}")
        if self.at == "exact":
            parts.append("(exact ε)")
        if self.at == "total":
            parts.append("(total ε)")
        return " ".join(parts) + (", denoised" if self.denoise else "")

    @property
    def kind(self) -> Kind:
        """Whose method it is."""
        if self.family in LDP:
            return "ldp"
        return "ours" if self.denoise or self.family == "Clamp-map" else "paper"

    def as_json(self) -> Json:
        """Return it as settings of a task; ``Method(**...)`` is the inverse."""
        return asdict(self)

    def mechanism(self, domain: Domain, epsilon: float) -> Mechanism:
        """Return the mechanism at ``epsilon`` per cell, of the method's kind of level."""
        if self.at == "exact":
            return _recalibrated(self, domain, epsilon)
        return self._nominal(domain, epsilon * (domain.span if self.at == "total" else 1))

    def _nominal(self, domain: Domain, epsilon: float) -> Mechanism:
        kind = _KINDS.get(self.family, self.family.lower())
        given: Json = {"epsilon": epsilon, "theta": self.theta or 2, "alpha": self.alpha}
        entry = registry.BY_KIND[kind]
        return registry.build(kind, domain, **{n: v for n, v in given.items() if entry.has(n)})


@lru_cache(maxsize=4096)
def _recalibrated(method: Method, domain: Domain, epsilon: float) -> Mechanism:
    """Return the mechanism of largest level whose exact loss per cell is at most ``epsilon``."""
    if method.family not in ("Global-map", "Adj-map", "Clamp-map"):
        raise ParameterError(f"{method.label} has no exact level per cell to be set to.")
    low, high = 0.0, epsilon
    while _excess(method, domain, high, epsilon) <= 0:
        low, high = high, 2 * high
    level = float(brentq(lambda e: _excess(method, domain, e, epsilon), low, high, rtol=1e-9))
    while _excess(method, domain, level, epsilon) > 0:
        level *= 1 - 1e-9
    return method._nominal(domain, level)


def _excess(method: Method, domain: Domain, level: float, epsilon: float) -> float:
    """Return the exact loss per cell less ``epsilon``; at level 0 the loss is 0."""
    return (method._nominal(domain, level).exact_epsilon() if level else 0.0) - epsilon


def adj_maps(thetas: tuple[int, ...], alphas: tuple[float, ...]) -> list[Method]:
    """Return Adj-map at every pair of parameters."""
    return [Method("Adj-map", theta=t, alpha=a) for t in thetas for a in alphas]


def at_level(domain: Domain, epsilon: float) -> str:
    """Return a level in words: per cell, and end to end.

    >>> at_level(Domain(1, 10), 0.64)
    'ε = 0.64 per unit (5.76 end to end)'
    """
    return f"ε = {epsilon:g} per unit ({epsilon * domain.span:g} end to end)"


def unit_axis(domain: Domain, what: str = "ε per unit of distance") -> str:
    """Return the label of an axis of levels.

    >>> unit_axis(Domain(1, 10))
    'ε per unit of distance (end to end: 9 ε)'
    """
    return f"{what} (end to end: {domain.span:,} ε)"


def level_heads(domain: Domain, epsilons: Iterable[float]) -> tuple[str, ...]:
    """Return the heads of a table's columns by level.

    >>> level_heads(Domain(1, 10), (0.64,))
    ('ε=0.64, total 5.76',)
    """
    return tuple(f"ε={e:g}, total {e * domain.span:g}" for e in epsilons)


def level_notes(domain: Domain) -> tuple[Note, ...]:
    """Return the notes on every figure by ε."""
    return noted("levels", grid=domain)
