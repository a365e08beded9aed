"""Order-preserving encryption, a baseline: it keeps all order and promises nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from opboost._typing import ArrayLike, IntArray
from opboost.grid import Domain
from opboost.mechanisms.mechanism import checked_integers
from opboost.promises import NoGuarantee
from opboost.runtime.extras import needs_extra


@dataclass(frozen=True, slots=True)
class OrderPreservingEncryption:
    """Boldyreva's cipher (EUROCRYPT 2009) through the package ``pyope``.

    The cipher is deterministic and strictly increasing, so anyone who knows the distribution of a
    column can recover its values from the order (docs/errata.md).  Each distinct value is encrypted
    once and then looked up; ``memo=False`` encrypts every row, as the paper's timing does.
    """

    domain: Domain
    key: bytes | None = field(default=None, repr=False)
    memo: bool = True

    def guarantee(self) -> NoGuarantee:
        """Return no promise: the order is revealed."""
        return NoGuarantee("order-preserving encryption reveals the order")

    def sample(self, x: ArrayLike) -> IntArray:
        """Return the encrypted grid values, in the same order."""
        with needs_extra("ope", "Order-preserving encryption"):
            from pyope.ope import OPE, ValueRange
        cipher = OPE(
            self.key or OPE.generate_key(),
            in_range=ValueRange(self.domain.L, self.domain.R),
            out_range=ValueRange(1, max(2**31 - 1, 2 * self.domain.size)),
        )
        values = checked_integers(x)
        if not self.memo:
            flat = [cipher.encrypt(int(v)) for v in values.reshape(-1)]
            return np.array(flat, dtype=np.int64).reshape(values.shape)
        distinct, where = np.unique(values, return_inverse=True)
        ciphers = np.array([cipher.encrypt(int(v)) for v in distinct], dtype=np.int64)
        return ciphers[where].reshape(values.shape)
