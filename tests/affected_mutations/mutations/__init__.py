"""All mutations, in a fixed order."""

from tests.affected_mutations.mutations import (
    attacks,
    files,
    reached_code,
    suite,
    surroundings,
    tools,
)

ALL = tools.ALL + reached_code.ALL + files.ALL + surroundings.ALL + suite.ALL + attacks.ALL
