"""The arena: every policy on every problem that it can play, with default settings and with tuned exploration.

problems.py      the problems
contestants.py   the policies that play a problem, their settings, and the values that exploration is tuned over
tournament.py    runs all problems with the runner, and resumes a run that was stopped
standings.py     regrets with intervals, differences from GLM-TSL, and ranks
figure.py        the figure of ranks
page.py          the interactive HTML page
"""
