"""A function whose source an agent reads."""


def shown_tool(value):
    # The comment is part of what the agent reads.
    return value + 1


def other_tool(value):
    return value + 2
