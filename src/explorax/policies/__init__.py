"""The algorithms, one to a file and named as in their papers; `base.py` says what a policy is."""
