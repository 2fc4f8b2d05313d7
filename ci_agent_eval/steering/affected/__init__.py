"""The tests that the changes of a working tree affect, as one command."""
