"""Counting the asserts that pass in strict tests: they are evidence that an episode was judged."""
