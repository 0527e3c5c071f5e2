"""The experiments of the paper: settings as data, and claims as functions of the results of a run."""
