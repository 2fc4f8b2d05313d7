"""promptfoo: write its configuration, then become it. The provider is in Python or JavaScript.

`run_promptfoo.py NODE NODE_MODULES python|javascript`. Its own cache is off: it would answer
from there. `work` is not imported, whose imports would count as promptfoo's.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKERS = 8
PROVIDERS: dict[str, object] = {
    "javascript": f"file://{HERE / 'promptfoo_provider.mjs'}",
    "python": {
        "id": f"file://{HERE / 'promptfoo_provider.py'}",
        "config": {"pythonExecutable": sys.executable, "workers": WORKERS},
    },
}


def configuration(provider: str, episodes: int) -> dict[str, object]:
    """Return what promptfoo reads."""
    prompts = [f"balance of account {number}" for number in range(episodes)]
    tests = [
        {
            "vars": {"prompt": prompt},
            "assert": [{"type": "equals", "value": f"The tool said {prompt}"}],
        }
        for prompt in prompts
    ]
    return {"prompts": ["{{prompt}}"], "providers": [PROVIDERS[provider]], "tests": tests}


def main(node: str, modules: str, provider: str) -> None:
    """Write the configuration and run promptfoo in this process's place."""
    text = json.dumps(configuration(provider, int(os.environ["BENCH_EPISODES"])))
    Path("promptfooconfig.json").write_text(text, "utf-8")
    program = f"{modules}/promptfoo/dist/src/entrypoint.js"
    options = ["-c", "promptfooconfig.json", "-j", os.environ["BENCH_AT_ONCE"]]
    quiet = ["--no-cache", "--no-progress-bar", "--no-table", "--no-share"]
    os.execv(node, [node, program, "eval", *options, *quiet])


if __name__ == "__main__":
    main(*sys.argv[1:])
