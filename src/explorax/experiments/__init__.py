"""The paper's experiments: settings as data, claims as functions of what a run leaves."""
