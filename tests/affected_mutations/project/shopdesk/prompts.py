"""Prompts and examples."""

import functools
import json
from pathlib import Path

ROOT = Path(__file__).parents[1]


def load_prompt(name):
    """Return a prompt; a file in `overrides` replaces it."""
    override = ROOT / "prompts/overrides" / f"{name}.md"
    path = override if override.exists() else ROOT / "prompts" / f"{name}.md"
    return path.read_text("utf-8")


@functools.lru_cache
def load_examples(name):
    """Return the few-shot examples of a desk."""
    files = sorted((ROOT / "examples" / name).glob("*.json"))
    pairs = [json.loads(file.read_text("utf-8")) for file in files]
    return "\n".join(f"{pair['customer']} -> {pair['desk']}" for pair in pairs)
