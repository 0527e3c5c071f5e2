"""The algorithms, one in each file and named as in their papers.  `base.py` defines what a policy is."""
