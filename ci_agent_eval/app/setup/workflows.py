"""The workflow files of a repository, for each way of running the suite. Pure.

docs/workflows holds them as examples; `make docs` writes those files from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent

ACTION = "org/agent-eval-action@v1"
REPORT_ACTION = "org/agent-eval-action/report@v1"
"""The action that runs no suite and needs no Docker."""
PACKAGE = "git+https://github.com/org/agent-eval-action@v1"

_CHECKOUT = "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2"
_SETUP_PYTHON = "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0"
_UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"
_DOWNLOAD = "actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093 # v4.3.0"
_UNPINNED = "# zizmor: ignore[unpinned-uses] - pin it by its commit"
_REPORT_URL = "${{ steps.page.outputs.artifact-url }}"
_LATER = {"publish": '"false" # a later step does, with links to the uploaded page'}
_READ = {"contents": "to read the suite"}
_WRITE = {
    "pull-requests": "to post the comment",
    "checks": "to create the check run",
}


@dataclass(frozen=True, slots=True)
class WorkflowPlan:
    """The choices of a repository."""

    paths: str = "tests/episodes"
    """Files and folders of the suite."""
    install: tuple[str, ...] = ("pip install -r requirements.txt",)
    """Commands that install the suite's dependencies."""
    extras: tuple[str, ...] = ()
    """Extras of our package that the suite needs."""
    branch: str = "main"
    """The default branch, whose runs are the baseline."""
    config: str | None = None
    """The configuration file, if it is not in the repository's root."""
    baseline: bool = True
    forks: bool = False
    shards: int = 1
    docker: bool = True
    environment: tuple[str, ...] = ()
    """Names of secrets that the suite gets as environment variables."""

    @property
    def install_commands(self) -> tuple[str, ...]:
        """The commands of the action's suite environment, which has our plugin without extras."""
        if not self.extras:
            return self.install
        return (*self.install, f"pip install 'ci-agent-eval[{','.join(self.extras)}] @ {PACKAGE}'")


def build_workflows(plan: WorkflowPlan) -> dict[str, str]:
    """Return the workflow files by their names."""
    if plan.forks:
        return {
            "agent-eval.yml": _build_run_for_forks(plan),
            "agent-eval-publish.yml": _build_publish(plan),
        }
    if plan.shards > 1:
        return {"agent-eval.yml": _build_sharded(plan)}
    return {"agent-eval.yml": _build_single(plan)}


def _build_single(plan: WorkflowPlan) -> str:
    comment = "Runs the agent episodes and gates the merge; make its check a required one."
    if plan.baseline:
        comment = "Compares each pull request with the last runs of the branch it goes to."
    permissions = _READ | (_BASELINE if _reads_artifacts(plan) else {}) | _WRITE
    steps = [
        _render_checkout(),
        *_run_suite(plan, _baseline_inputs(plan) | _LATER),
        *_upload_and_publish(plan, ACTION if plan.docker else None),
        _render_upload("agent-eval-report"),
    ]
    return _render_workflow(
        comment, plan, [_render_job("episodes", "Agent episodes", permissions, steps)]
    )


_BASELINE = {"actions": "to download the artifacts of earlier runs"}


def _reads_artifacts(plan: WorkflowPlan) -> bool:
    """Return whether the runs of the default branch are the baseline, which needs the action."""
    return plan.baseline and plan.docker


def _baseline_inputs(plan: WorkflowPlan) -> dict[str, str]:
    return {"baseline": "artifact"} if _reads_artifacts(plan) else {}


def _build_run_for_forks(plan: WorkflowPlan) -> str:
    comment = (
        "Runs the suite, for forks too, with no right to write anything. agent-eval-publish.yml\n"
        "takes over the uploaded results."
    )
    inputs = {"comment": '"off" # the other workflow does both', "check-run": '"false"'}
    steps = [_render_checkout(), *_run_suite(plan, inputs), _render_upload("agent-eval-report")]
    return _render_workflow(
        comment, plan, [_render_job("episodes", "Agent episodes", _READ, steps)]
    )


def _build_publish(plan: WorkflowPlan) -> str:
    inputs = {"mode": "publish"} | _config_inputs(plan) | _baseline_inputs(plan)
    steps = [
        "# Without `ref` this is the default branch, never the pull request.\n"
        + _render_checkout(),
        _render_action(inputs | _LATER, action=REPORT_ACTION, step="judge"),
        _upload_page(missing="ignore # when the results were refused"),
        _render_action(
            inputs | {"report-url": _REPORT_URL},
            action=REPORT_ACTION,
            condition=_unless_skipped("judge"),
        ),
        _render_upload("agent-eval-published", missing="ignore # when the results were refused"),
    ]
    permissions = {
        "contents": "to read this branch's agent-eval.toml",
        "actions": "to download the artifact",
    } | _WRITE
    job = _render_job("publish", "Publish agent episodes", permissions, steps, minutes=10)
    return f"""\
# Publishes the results of a run of "agent-eval". It has a token that can write, so it never checks
# out, installs or runs anything of the pull request: only this branch's configuration.
name: agent-eval-publish
on:
  workflow_run: # zizmor: ignore[dangerous-triggers] - takes data over, and runs none of their code
    workflows: [agent-eval]
    types: [completed]

permissions: {{}}

concurrency:
  group: ${{{{ github.workflow }}}}-${{{{ github.event.workflow_run.head_sha }}}}
  cancel-in-progress: false

jobs:
{indent(job, "  ")}"""


def _build_sharded(plan: WorkflowPlan) -> str:
    numbers = ", ".join(str(number) for number in range(1, plan.shards + 1))
    strategy = (
        "strategy:\n"
        "  fail-fast: false # a cancelled shard leaves nothing, and would fail the report\n"
        f"  matrix:\n    shard: [{numbers}]\n"
    )
    shard = {"shard": f"${{{{ matrix.shard }}}}/{plan.shards}"}
    run = _render_job(
        "shard",
        f"Shard ${{{{ matrix.shard }}}} of {plan.shards}",
        _READ,
        [
            _render_checkout(),
            *_run_suite(plan, shard),
            _render_upload("agent-eval-shard-${{ matrix.shard }}", again="shard"),
        ],
        head=strategy,
    )
    inputs = {
        "mode": "report",
        "results": "shards/*",
        "jobs-result": "${{ needs.shard.result }} # a shard that died leaves no word of its own",
    }
    download = f"- uses: {_DOWNLOAD}\n  with:\n    pattern: agent-eval-shard-*\n    path: shards\n"
    permissions = {"contents": "to read agent-eval.toml"}
    permissions |= (_BASELINE if _reads_artifacts(plan) else {}) | _WRITE
    report = _render_job(
        "report",
        "Agent episodes",
        permissions,
        [
            _render_checkout(),
            download,
            _render_action(
                inputs | _config_inputs(plan) | _baseline_inputs(plan) | _LATER,
                action=REPORT_ACTION,
                step="run",
            ),
            *_upload_and_publish(plan, REPORT_ACTION),
            _render_upload("agent-eval-report"),
        ],
        minutes=10,
        before="needs: shard\nif: always() # a shard that failed, or never started, counts too\n",
    )
    words = f"Runs the suite in {plan.shards} jobs side by side, and reports on all of them in one."
    return _render_workflow(words, plan, [run, report])


def _render_workflow(comment: str, plan: WorkflowPlan, jobs: Sequence[str]) -> str:
    push = ""
    cancel = "true"
    if plan.baseline:
        push = f"  push:\n    branches: [{plan.branch}] # runs on it are the baseline\n"
        cancel = "${{ github.event_name == 'pull_request' }}"
    lines = "\n".join(f"# {line}" for line in comment.splitlines())
    return f"""\
{lines}
name: agent-eval
on:
  pull_request:
  merge_group:
{push}
permissions: {{}}

concurrency:
  group: ${{{{ github.workflow }}}}-${{{{ github.ref }}}}
  cancel-in-progress: {cancel}

jobs:
{indent(chr(10).join(jobs), "  ", lambda line: bool(line.strip()))}"""


def _render_job(
    key: str,
    name: str,
    permissions: Mapping[str, str],
    steps: Sequence[str],
    *,
    minutes: int = 30,
    before: str = "",
    head: str = "",
) -> str:
    rights = "".join(
        f"  {name}: {'write' if name in _WRITE else 'read'} # {reason}\n"
        for name, reason in permissions.items()
    )
    text = (
        f"name: {name}\n{before}runs-on: ubuntu-latest\ntimeout-minutes: {minutes}\n"
        f"permissions:\n{rights}{head}steps:\n{indent(''.join(steps), '  ')}"
    )
    return f"{key}:\n{indent(text, '  ')}"


def _render_checkout() -> str:
    return f"- uses: {_CHECKOUT}\n  with:\n    persist-credentials: false\n"


def _render_upload(name: str, *, again: str = "run", missing: str | None = None) -> str:
    last = f"overwrite: true # when the {again} is run again"
    if missing is not None:
        last = f"if-no-files-found: {missing}"
    return (
        f"- uses: {_UPLOAD}\n  if: always()\n  with:\n    name: {name}\n"
        f"    path: agent-eval-report/\n    {last}\n"
    )


def _upload_page(*, missing: str = "warn") -> str:
    given = "" if missing == "warn" else f"    if-no-files-found: {missing}\n"
    return (
        f"- id: page\n  uses: {_UPLOAD}\n  if: always()\n  with:\n"
        "    path: agent-eval-report/report.html\n"
        "    archive: false # one file as it is, which the browser opens\n"
        f"    overwrite: true # when the run is run again\n{given}"
    )


def _upload_and_publish(plan: WorkflowPlan, action: str | None) -> list[str]:
    """Return the steps that upload the page, and publish the report with links to it.

    `action` is that of the last step; None: it is a command.
    """
    condition = _unless_skipped("run")
    if action is not None:
        inputs = {"mode": "publish"} | _config_inputs(plan) | {"report-url": _REPORT_URL}
        return [_upload_page(), _render_action(inputs, action=action, condition=condition)]
    config = f" --config {plan.config}" if plan.config else ""
    publish = (
        "# Only this step gets the token, so the suite never sees it.\n"
        f"- if: {condition}\n"
        f"  run: agent-eval publish{config}\n"
        "  env:\n    GITHUB_TOKEN: ${{ github.token }}\n"
        f"    AGENT_EVAL_REPORT_URL: {_REPORT_URL}\n"
    )
    return [_upload_page(), publish]


def _unless_skipped(step: str) -> str:
    return f"always() && steps.{step}.outcome != 'skipped'"


def _run_suite(plan: WorkflowPlan, inputs: Mapping[str, str]) -> list[str]:
    """Return the steps that run the suite and report, with the action or without Docker."""
    environment = "".join(f"    {key}: ${{{{ secrets.{key} }}}}\n" for key in plan.environment)
    if plan.docker:
        own: dict[str, str] = {"paths": plan.paths} | _config_inputs(plan) | dict(inputs)
        if plan.install_commands:
            own = {"install": "|\n" + indent("\n".join(plan.install_commands), "      ")} | own
        step = "run" if "publish" in inputs else ""
        return [_render_action(own, step=step) + (f"  env:\n{environment}" if environment else "")]
    return _run_without_docker(plan, inputs, environment)


def _run_without_docker(
    plan: WorkflowPlan, inputs: Mapping[str, str], environment: str
) -> list[str]:
    extras = ",".join(dict.fromkeys(("pytest", *plan.extras)))
    commands = [*plan.install, f"pip install 'ci-agent-eval[{extras}] @ {PACKAGE}'"]
    config = f" --config {plan.config}" if plan.config else ""
    shard = f" --shard {inputs['shard']}" if "shard" in inputs else ""
    run = f"  run: agent-eval run {plan.paths}{config}{shard}\n"
    return [
        f'- uses: {_SETUP_PYTHON}\n  with:\n    python-version: "3.13"\n',
        f"- run: |\n{indent(chr(10).join(commands), '    ')}\n",
        f"- id: run\n{run}" + (f"  env:\n{environment}" if environment else ""),
    ]


def _config_inputs(plan: WorkflowPlan) -> dict[str, str]:
    return {} if plan.config is None else {"config": plan.config}


def _render_action(
    inputs: Mapping[str, str], *, action: str = ACTION, step: str = "", condition: str = ""
) -> str:
    given = "".join(f"    {name}: {value}\n" for name, value in inputs.items())
    head = f"id: {step}\n  " if step else f"if: {condition}\n  " if condition else ""
    return f"- {head}uses: {action} {_UNPINNED}\n  with:\n{given}"
