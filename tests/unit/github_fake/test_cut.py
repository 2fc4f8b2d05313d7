"""The cut of GitHub's description, and the handlers that answer for it."""

import json
from pathlib import Path

from scripts.renew_github_openapi import OPERATIONS, cut
from tests.github_fake import spec
from tests.github_fake.routes import HANDLERS


def test_every_operation_of_the_cut_has_a_handler_and_the_other_way_round():
    assert sorted(HANDLERS) == sorted(operation.key for operation in spec.operations())


def test_the_cut_is_what_its_script_makes_of_it():
    document = json.loads(Path(spec.__file__).with_name("openapi.json").read_text("utf-8"))
    assert cut(document, OPERATIONS) == document
    assert document["x-source"]["license"] == "MIT"
