"""Estimate clean rows from noisy ones: post-processing of a release, so it costs no privacy.

The label party knows its labels and the public noise matrix of each column.  For each label, it
fits a model of the clean rows to the noisy ones, and draws clean rows from their posterior.  The
modules, in reading order:

    noise_matrix -> label_groups -> encoded_rows -> latent_classes -> posterior_draws
        -> model_selection -> fit -> whether_to_denoise
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
