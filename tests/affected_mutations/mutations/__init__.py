"""All mutations, in a fixed order."""

from tests.affected_mutations.mutations import attacks, code, files, suite, surroundings

ALL = code.ALL + files.ALL + surroundings.ALL + suite.ALL + attacks.ALL
