"""Clean rows from noisy ones: post-processing of what was released, so it costs no privacy.

The label party knows the public channel of each column and its labels.  It fits a model of the
clean rows of each label through the channel, and draws clean rows from their posterior.

    channel -> labels -> rows -> mixture -> draws -> choose -> fit -> verdict
"""

from opboost.denoise.channel import Bits, Channel, channel_of, outputs_of
from opboost.denoise.draws import Law, Outputs, States
from opboost.denoise.fit import Denoiser, fit
from opboost.denoise.labels import Groups
from opboost.denoise.rows import Space
from opboost.denoise.verdict import Verdict

__all__ = [
    "Bits",
    "Channel",
    "Denoiser",
    "Groups",
    "Law",
    "Outputs",
    "Space",
    "States",
    "Verdict",
    "channel_of",
    "fit",
    "outputs_of",
]
