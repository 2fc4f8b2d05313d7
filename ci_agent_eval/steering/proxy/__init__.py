"""A proxy in front of a model's API that answers held tool calls itself.

The model gets the message as the result of the held call, and the client the model's next answer.
`apis` says what differs between `chat`, `messages` and `responses`; `answer_reviewer` and `server`
do the I/O, with `model_traffic.forwarding`.
"""
