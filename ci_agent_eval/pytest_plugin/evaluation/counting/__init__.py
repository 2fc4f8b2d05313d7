"""Counting of passed asserts in strict tests: evidence that an episode was judged."""
