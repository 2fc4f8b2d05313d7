"""The steering policy: a tool call in, a decision out. Pure.

The clock and the memory of sessions are parameters. The command, the hook, the proxy and
`engine/` ask it.
"""
