"""A proxy in front of a model's API that replaces steered tool calls in the answers.

The rewriting of bodies and streams is pure (`sse`, `chat`, `responses`, `messages`,
`session_identity`, `open_calls`, `headers`, `error_response`); `upstream`, `app` and `server` do
the I/O.
"""
