"""Concurrent episodes: several at once on the session's event loop, reported one by one.

pytest's protocol of an item stays what it is: setup, call, teardown, its reports, in the order
of the run, with every plugin's hooks around them. What changes is when an episode works: the
async episodes that come next are started ahead, each with fixtures of its own and a task of its
own; the item whose turn it is awaits its own task, and the others go on while it does.
"""
