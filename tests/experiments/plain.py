"""Settings of studies, as plain data."""

GOOD = {"environment": "logistic", "dims": [5], "rounds": 100, "checkpoints": 10, "curves": [{"policy": "glm_tsl"}]}
BY_PANELS = {
    "environment": "logistic",
    "panels": [
        {"label": "little", "environment_settings": {"n_features": 2}, "curve_settings": {"ridge": 0.1}},
        {"label": "much", "environment_settings": {"n_features": 3}, "curve_settings": {"ridge": 10.0}},
    ],
    "measure": "reward",
    "rounds": 200,
    "curves": [{"policy": "glm_tsl", "settings": {"scale": 2.0}}, {"policy": "uniform"}],
    "environment_settings": {"n_arms": 7},
}
COUNTS = GOOD | {"environment": "poisson"}
