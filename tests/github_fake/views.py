"""The state as GitHub's JSON; ``base`` is the address the API was called at, without a slash."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tests.github_fake.spec import filled
from tests.github_fake.state import (
    Artifact,
    CheckRun,
    Comment,
    Pull,
    Repository,
    WorkflowRun,
)

Json = dict[str, Any]
ACTIONS_APP_ID = 15368
"""Id of the app whose token ``GITHUB_TOKEN`` is, on github.com."""


def _site(base: str) -> str:
    """Return the address of the web pages that belong to the API at ``base``."""
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc}"


def _number(text: str) -> int:
    """Return a small stable number for a name, for ids of users and repositories."""
    return 1 + sum(ord(letter) * place for place, letter in enumerate(text, 1))


def user(login: str, base: str, schema: str = "simple-user") -> Json:
    """Return an account; ``[bot]`` logins are bots."""
    url = f"{base}/users/{login}"
    return filled(
        schema,
        {
            "login": login,
            "id": _number(login),
            "type": "Bot" if login.endswith("[bot]") else "User",
            "url": url,
            "html_url": f"{_site(base)}/{login}",
        },
    )


def authenticated_user(login: str, base: str) -> Json:
    """Return the token's own account, as its owner sees it."""
    return {**user(login, base, "private-user"), "user_view_type": "private"}


def repository(repo: Repository, base: str, schema: str = "full-repository") -> Json:
    """Return a repository."""
    owner, name = repo.full_name.split("/")
    return filled(
        schema,
        {
            "id": repo.id,
            "name": name,
            "full_name": repo.full_name,
            "owner": user(owner, base),
            "private": repo.private,
            "has_issues": repo.has_issues,
            "default_branch": repo.default_branch,
            "url": f"{base}/repos/{repo.full_name}",
            "html_url": f"{_site(base)}/{repo.full_name}",
        },
    )


def branch(repo: Repository, base: str) -> Json:
    """Return the default branch, with what its protection requires."""
    page = f"{_site(base)}/{repo.full_name}/tree/{repo.default_branch}"
    url = f"{base}/repos/{repo.full_name}/branches/{repo.default_branch}"
    checks = {
        "contexts": list(repo.protected_checks),
        "checks": [{"context": name, "app_id": None} for name in repo.protected_checks],
    }
    protection = {"enabled": True, "required_status_checks": checks}
    return filled(
        "branch-with-protection",
        {
            "name": repo.default_branch,
            "commit": {"author": user("octocat", base), "committer": user("octocat", base)},
            "protected": bool(repo.protected_checks),
            "protection": protection if repo.protected_checks else {"enabled": False},
            "protection_url": f"{url}/protection",
            "_links": {"html": page, "self": url},
        },
    )


def branch_rules(repo: Repository) -> list[Json]:
    """Return the rules of the rulesets of the default branch."""
    checks = [{"context": name} for name in repo.ruleset_checks]
    parameters = {
        "strict_required_status_checks_policy": False,
        "required_status_checks": checks,
    }
    source = {"ruleset_source_type": "Repository", "ruleset_source": repo.full_name}
    found: list[Json] = [{"type": "deletion", **source, "ruleset_id": 1}]
    if checks:
        rule = {"type": "required_status_checks", "parameters": parameters}
        found.append({**rule, **source, "ruleset_id": 1})
    return found


def comment(repo: Repository, one: Comment, base: str) -> Json:
    """Return an issue comment."""
    kind = "pull" if one.issue in repo.pulls else "issues"
    page = f"{_site(base)}/{repo.full_name}/{kind}/{one.issue}"
    return filled(
        "issue-comment",
        {
            "id": one.id,
            "node_id": f"IC_{one.id}",
            "body": one.body,
            "user": user(one.author, base),
            "url": f"{base}/repos/{repo.full_name}/issues/comments/{one.id}",
            "html_url": f"{page}#issuecomment-{one.id}",
            "issue_url": f"{base}/repos/{repo.full_name}/issues/{one.issue}",
            "created_at": one.created_at,
            "updated_at": one.updated_at,
        },
    )


def app(slug: str, base: str) -> Json:
    """Return the GitHub App that made a check run."""
    return filled(
        "nullable-integration",
        {
            "id": ACTIONS_APP_ID if slug == "github-actions" else _number(slug),
            "slug": slug,
            "name": slug,
            "owner": user("github", base),
            "html_url": f"{_site(base)}/apps/{slug}",
        },
    )


def check_run(repo: Repository, run: CheckRun, base: str) -> Json:
    """Return a check run; annotations are counted here and listed by their own address."""
    url = f"{base}/repos/{repo.full_name}/check-runs/{run.id}"
    return filled(
        "check-run",
        {
            "id": run.id,
            "node_id": f"CR_{run.id}",
            "name": run.name,
            "head_sha": run.head_sha,
            "status": run.status,
            "conclusion": run.conclusion,
            "external_id": run.external_id or "",
            "details_url": run.details_url,
            "started_at": run.started_at,
            "completed_at": run.completed_at,
            "url": url,
            "html_url": f"{_site(base)}/{repo.full_name}/runs/{run.id}",
            "app": app(run.app, base),
            "check_suite": {"id": _number(run.head_sha)},
            "output": {
                "title": run.title,
                "summary": run.summary,
                "text": run.text,
                "annotations_count": len(run.annotations),
                "annotations_url": f"{url}/annotations",
            },
        },
    )


def _side(repo: Repository, full_name: str, ref: str, sha: str, base: str) -> Json:
    """Return the head or base of a pull request."""
    owner, name = full_name.split("/")
    shown = repository(repo, base, "repository")
    if full_name != repo.full_name:
        url = f"{base}/repos/{full_name}"
        shown |= {"id": _number(full_name), "name": name, "full_name": full_name}
        shown |= {"owner": user(owner, base), "fork": True, "url": url}
    return {
        "label": f"{owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "repo": shown,
        "user": user(owner, base),
    }


def pull(repo: Repository, one: Pull, base: str, schema: str = "pull-request") -> Json:
    """Return a pull request, whole or (``pull-request-simple``) as it is listed."""
    root = f"{base}/repos/{repo.full_name}"
    url = f"{root}/pulls/{one.number}"
    issue = f"{root}/issues/{one.number}"
    page = f"{_site(base)}/{repo.full_name}/pull/{one.number}"
    return filled(
        schema,
        {
            "id": _number(url),
            "number": one.number,
            "state": one.state,
            "title": f"Pull request {one.number}",
            "user": user(one.author, base),
            "head": _side(repo, one.head_repo, one.head_ref, one.head_sha, base),
            "base": _side(repo, repo.full_name, one.base_ref, one.base_sha, base),
            "merge_commit_sha": one.merge_commit_sha,
            "url": url,
            "html_url": page,
            "issue_url": issue,
            "comments_url": f"{issue}/comments",
            "commits_url": f"{url}/commits",
            "_links": {"self": {"href": url}, "html": {"href": page}, "issue": {"href": issue}},
        },
    )


def artifact(repo: Repository, one: Artifact, base: str) -> Json:
    """Return an artifact of a workflow run."""
    url = f"{base}/repos/{repo.full_name}/actions/artifacts/{one.id}"
    run = repo.workflow_runs.get(one.run_id)
    return filled(
        "artifact",
        {
            "id": one.id,
            "name": one.name,
            "size_in_bytes": one.size_in_bytes,
            "url": url,
            "archive_download_url": f"{url}/zip",
            "created_at": one.created_at,
            "expired": one.expired,
            "digest": one.digest,
            **({"workflow_run": _run_of_artifact(repo, run)} if run else {}),
        },
    )


def _run_of_artifact(repo: Repository, run: WorkflowRun) -> Json:
    return {
        "id": run.id,
        "repository_id": repo.id,
        "head_repository_id": _number(run.head_repo),
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
    }


def workflow_run(repo: Repository, run: WorkflowRun, base: str) -> Json:
    """Return a run of a workflow."""
    root = f"{base}/repos/{repo.full_name}/actions"
    url = f"{root}/runs/{run.id}"
    shown = {
        "id": run.id,
        "name": "agent-eval",
        "event": run.event,
        "status": "completed" if run.conclusion else "in_progress",
        "conclusion": run.conclusion,
        "workflow_id": run.workflow_id,
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": run.path,
        "created_at": run.created_at,
        "updated_at": run.created_at,
        "url": url,
        "html_url": f"{_site(base)}/{repo.full_name}/actions/runs/{run.id}",
        "artifacts_url": f"{url}/artifacts",
        "workflow_url": f"{root}/workflows/{run.workflow_id}",
        "repository": repository(repo, base, "minimal-repository"),
        "head_repository": repository(repo, base, "minimal-repository")
        | {"full_name": run.head_repo},
    }
    return filled("workflow-run", shown)
