"""The gateway: a loopback server that records the model calls of other processes.

Each episode has its own address, `http://127.0.0.1:PORT/e/TOKEN/PROVIDER`, which its subprocesses
use in place of the provider's (`providers.build_environment`). `app` passes requests
to the episode's `TrafficRecorder` and forwards them; `server` runs it in a thread.
"""
