"""Code that no import statement names."""

import importlib.util
import runpy
import sys

from shopdesk.prompts import ROOT


def apply_formula(weight: int) -> int:
    """Apply the formula to a weight."""
    return eval((ROOT / "data/formula.txt").read_text("utf-8"), {"weight": weight})


def add_bonus(points: int) -> int:
    """Add the bonus to points."""
    return points + runpy.run_path(str(ROOT / "scripts/bonus.py"))["BONUS"]


def count_points(cents: int) -> int:
    """Count the points of a purchase."""
    spec = importlib.util.spec_from_file_location("points", ROOT / "extensions/points.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.count_points(cents)


def add_tax(cents: int) -> int:
    """Add the tax to a price."""
    if str(ROOT / "vendor") not in sys.path:
        sys.path.insert(0, str(ROOT / "vendor"))
    import tinytax

    return tinytax.add_tax(cents)


def price_bouquet(stems: int) -> str:
    """Price a bouquet; its parts have the names of modules that someone may add."""
    try:
        import flowerprices
    except ImportError:
        return f"{stems} stems, usual price"
    return f"{stems} stems, {flowerprices.PRICE}"
