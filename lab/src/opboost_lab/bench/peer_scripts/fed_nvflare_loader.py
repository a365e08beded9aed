"""Load the rows of one party for NVFlare's simulator."""

import numpy as np
import xgboost
from nvflare.app_opt.xgboost.data_loader import XGBDataLoader


class PartyLoader(XGBDataLoader):
    """The columns from ``first`` to before ``last`` and, if ``labelled``, the label."""

    def __init__(self, data: str, first: int, last: int, labelled: bool):
        self.data, self.first, self.last, self.labelled = data, first, last, labelled

    def load_data(self):
        """Return the training rows, and a few of them for the evaluation that the runner needs."""
        data = np.load(self.data)
        X, y = data["X"][:, self.first : self.last], data["y"] if self.labelled else None
        few = None if y is None else y[:200]
        split = self.data_split_mode
        return (
            xgboost.DMatrix(X, y, data_split_mode=split),
            xgboost.DMatrix(X[:200], few, data_split_mode=split),
        )
