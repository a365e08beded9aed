"""The label party: receives releases, trains, asks for split values, predicts."""
