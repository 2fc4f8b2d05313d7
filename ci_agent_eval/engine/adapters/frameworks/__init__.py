"""Adapters for agents of other frameworks, found by the class of the object.

An adapter calls the agent, keeps its conversation, and finds the final text and the typed output.
Turns, tool calls, tokens and costs come from the model traffic. No framework is imported here:
the test that has an object of one has imported it.
"""
