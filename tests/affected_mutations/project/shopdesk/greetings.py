"""Greetings, which a test replaces."""


def greet_customer(name: str) -> str:
    """Greet a customer by name."""
    return f"{choose_word()} {name}"


def choose_word():
    return "Hello"
