"""What tests of the fake GitHub send it."""

import http.client
import json

from github import Auth, Github

REPO = "octo/shop"
HEAD = "a" * 40
COMMENTS = f"/repos/{REPO}/issues/7/comments"
RUNS = f"/repos/{REPO}/check-runs"


def client(fake, token="ghs_bot", base=None):
    return Github(
        base_url=base or fake.url,
        auth=Auth.Token(token),
        retry=None,
        per_page=100,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )


def raw(fake, method, path, body=None, token="ghs_bot"):
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=120)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    payload = body if body is None or isinstance(body, str) else json.dumps(body)
    try:
        connection.request(method, path, payload, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response.headers
    finally:
        connection.close()


def annotation(**fields):
    return {
        "path": "tests/test_refund.py",
        "start_line": 3,
        "end_line": 3,
        "annotation_level": "failure",
        "message": "refund was not issued",
        **fields,
    }


def output(*annotations, **fields):
    return {"title": "t", "summary": "s", "annotations": list(annotations), **fields}


def run_body(**fields):
    return {"name": "agent-eval", "head_sha": HEAD, "status": "in_progress", **fields}
