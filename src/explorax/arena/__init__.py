"""The arena: every policy on every problem that it can play, as documented and with its exploration tuned.

problems.py      what is played
contestants.py   who plays, with which settings, and the values that its exploration is tuned over
tournament.py    plays it all with the runner; stopped, it goes on where it was
standings.py     regrets with intervals, differences from GLM-TSL, ranks
figure.py        ranks as a figure
page.py          one HTML page to look around in
"""
