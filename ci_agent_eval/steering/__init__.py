"""May this tool call run? The decision that keeps agents from running a whole suite by accident.

Pure: shell text and arguments in, a decision out; the clock and the memory of sessions are
parameters. The doors that ask are `steer/` (command, hook, proxy) and `engine/`.
"""
