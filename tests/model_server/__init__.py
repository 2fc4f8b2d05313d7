"""A model's APIs on the loopback, answered from a script, complete or streamed.

OpenAI's chat completions and responses, and Anthropic's messages.

Deterministic: which step answers follows from the request's own messages, so that any
number of conversations may run at once. `Step` says what one step can be.
"""

from tests.model_server.script import Script, Step
from tests.model_server.server import ModelServer

__all__ = ["ModelServer", "Script", "Step"]
