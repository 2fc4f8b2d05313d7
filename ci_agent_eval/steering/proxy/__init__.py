"""A proxy in front of a model's API that replaces steered tool calls in the answers.

The rewriting of bodies and streams is pure (`sse`, `chat`, `responses`, `messages`,
`session_identity`, `open_calls`, `error_response`); `app` and `server` do the I/O, with the parts
of `model_traffic.forwarding`.
"""
