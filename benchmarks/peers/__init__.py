"""`make bench-peers`: our runner and our reporter beside others, on the same work.

`Section` of `benchmarks.peers.page` is what they came to, as Markdown.
"""
