"""From released columns and labels to a stock model: the feature matrix, the targets, denoising."""
