"""Kinds of badges."""


class Badge:
    """A badge."""

    kinds = []

    def __init_subclass__(cls, title="badge"):
        Badge.kinds.append(f"{title} {cls.__name__}")


class Silver(Badge, title="shiny"):
    """Silver."""


class Bronze(Badge):
    """Bronze."""
