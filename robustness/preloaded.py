"""Load and compile everything that parties and decoders use: import this once, then fork."""

import opboost.boosting.xgboost_backend
import opboost.cli
import opboost.estimators
import opboost.files.desensitize_table
import opboost.files.train_and_predict
import opboost.parties.label.label_party
import opboost.transport.feature.join_job
import opboost.transport.label.run_over_network  # noqa: F401
from opboost.protocol.entropy_coding import warm_up

warm_up()
