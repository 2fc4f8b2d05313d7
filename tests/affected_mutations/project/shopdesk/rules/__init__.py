"""Rules, which modules of this package register."""

import importlib
import pkgutil

RULES = {}


def register_rule(function):
    RULES[function.__name__] = function
    return function


def apply_rules(cents: int) -> str:
    """Apply the rules to a price."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return "; ".join(RULES[name](cents) for name in sorted(RULES))
