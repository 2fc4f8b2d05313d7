"""`python -m ci_agent_eval` is `agent-eval`."""

from __future__ import annotations

import sys

from ci_agent_eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
