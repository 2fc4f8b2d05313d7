"""Signatures of requests to Bedrock: they cover the host, so the gateway makes new ones."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.headers import Headers, get_header

_SCOPE = re.compile(r"AWS4-HMAC-SHA256 Credential=[^/]+/\d+/([a-z0-9-]+)/([a-z0-9-]+)/")
_SIGNED_ANEW = (b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256")


def find_region(headers: Headers) -> str | None:
    """Return the region that a request is signed for; None without a signature."""
    match = _SCOPE.match(get_header(headers, b"authorization"))
    return None if match is None else match[1]


def sign_request(
    method: str, url: str, headers: Headers, body: bytes, environ: Mapping[str, str]
) -> Headers:
    """Return the headers with a signature for `url`; unsigned requests keep theirs.

    `environ` holds the credentials, or names the profile that has them. Raises InputError if
    botocore or credentials are missing.
    """
    scope = _SCOPE.match(get_header(headers, b"authorization"))
    if scope is None:
        return headers
    kept = [(name, value) for name, value in headers if name not in _SIGNED_ANEW]
    try:
        auth = importlib.import_module("botocore.auth")
        awsrequest = importlib.import_module("botocore.awsrequest")
        session = importlib.import_module("botocore.session")
    except ImportError as error:
        raise InputError(
            "The gateway has to sign requests to Bedrock anew, and botocore is not installed in "
            "the tests' environment. Install it: pip install botocore"
        ) from error
    aws = session.Session(profile=environ.get("AWS_PROFILE"))
    if "AWS_ACCESS_KEY_ID" in environ:
        aws.set_credentials(
            environ["AWS_ACCESS_KEY_ID"],
            environ.get("AWS_SECRET_ACCESS_KEY", ""),
            environ.get("AWS_SESSION_TOKEN") or None,
        )
    credentials = aws.get_credentials()
    if credentials is None:
        raise InputError(
            "The gateway has to sign requests to Bedrock anew, and finds no AWS credentials. Set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the agent or the tests"
        )
    content_type = get_header(headers, b"content-type")
    signed = awsrequest.AWSRequest(method, url, {"content-type": content_type}, body)
    auth.SigV4Auth(credentials, scope[2], scope[1]).add_auth(signed)
    new = {name.lower(): str(value) for name, value in signed.headers.items()}
    new.pop("content-type")
    return [*kept, *((name.encode(), value.encode()) for name, value in new.items())]
