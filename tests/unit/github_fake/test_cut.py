"""The cut of GitHub's description, and the handlers that answer for it."""

import json
from pathlib import Path

import pytest

from scripts.renew_github_openapi import OPERATIONS, cut
from tests.github_fake import spec
from tests.github_fake.routes import HANDLERS


def test_every_operation_of_the_cut_has_a_handler_and_the_other_way_round():
    assert sorted(HANDLERS) == sorted(operation.key for operation in spec.operations())


def test_the_cut_is_what_its_script_makes_of_it():
    document = json.loads(Path(spec.__file__).with_name("openapi.json").read_text("utf-8"))
    assert cut(document, OPERATIONS) == document
    assert document["x-source"]["license"] == "MIT"


def test_the_cut_keeps_what_is_named_like_prose_and_every_reference():
    document = {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1", "license": {"name": "MIT"}, "description": "d"},
        "paths": {
            "/a": {
                "get": {"summary": "s", "responses": {"200": {"$ref": "#/components/responses/r"}}}
            },
            "/b": {"get": {}},
        },
        "components": {
            "responses": {"r": {"schema": {"$ref": "#/components/schemas/title"}, "x-note": "n"}},
            "schemas": {
                "title": {
                    "title": "prose",
                    "properties": {"title": {"$ref": "#/components/schemas/title", "example": 1}},
                    "required": ["title"],
                    "maxProperties": 3,
                },
                "unused": {},
            },
        },
    }
    made = cut(document, [("get", "/a")])
    assert made["paths"] == {
        "/a": {"get": {"responses": {"200": {"$ref": "#/components/responses/r"}}}}
    }
    assert made["components"] == {
        "responses": {"r": {"schema": {"$ref": "#/components/schemas/title"}}},
        "schemas": {
            "title": {
                "properties": {"title": {"$ref": "#/components/schemas/title"}},
                "required": ["title"],
                "maxProperties": 3,
            }
        },
    }
    with pytest.raises(KeyError):
        cut(document, [("post", "/a")])
