"""The proxy in front of a model: answers pass through it, and calls that are steered do not.

What is done to bodies and to streams is pure (`sse`, `chat`, `responses`, `messages`,
`conversation`, `unanswered`, `headers`, `complaints`); `upstream`, `app` and `serve` do the I/O.
"""
