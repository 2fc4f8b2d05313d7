"""Decorators of tools."""

import functools


def add_signature(name):
    """Add a name to the text that a tool returns."""

    def decorate(tool):
        @functools.wraps(tool)
        def signed(*args, **kwargs):
            return f"{tool(*args, **kwargs)} [{name}]"

        return signed

    return decorate


def repeat_word(tool):
    @functools.wraps(tool)
    def repeated(*args, **kwargs):
        return f"{tool(*args, **kwargs)}!"

    return repeated
