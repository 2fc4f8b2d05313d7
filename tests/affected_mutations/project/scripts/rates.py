"""Print the rate of a currency."""

import json
import sys
from pathlib import Path

from rate_format import format_rate

RATES = json.loads((Path(__file__).parents[1] / "data/fx.json").read_text())
print(format_rate(RATES[sys.argv[1]]))
