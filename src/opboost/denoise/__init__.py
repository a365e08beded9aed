"""Clean rows from noisy ones: post-processing of what was released, so it costs no privacy.

The label party knows the public channel of each column and its labels.  It fits a model of the
clean rows of each label through the channel, and draws clean rows from their posterior.

    channel -> labels -> rows -> mixture -> draws -> choose -> fit -> verdict
"""

from opboost.denoise.encoded_rows import Space
from opboost.denoise.fit import Denoiser, fit
from opboost.denoise.label_groups import Groups
from opboost.denoise.noise_matrix import BitNoise, NoiseMatrix, noise_matrix_of, outputs_of
from opboost.denoise.posterior_draws import JointDistribution, Outputs, States
from opboost.denoise.whether_to_denoise import Verdict

__all__ = [
    "BitNoise",
    "Denoiser",
    "Groups",
    "JointDistribution",
    "NoiseMatrix",
    "Outputs",
    "Space",
    "States",
    "Verdict",
    "fit",
    "noise_matrix_of",
    "outputs_of",
]
