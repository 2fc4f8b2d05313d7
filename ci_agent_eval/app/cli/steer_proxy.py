"""`agent-eval steer proxy`: start the steering proxy for a model API.

The server is imported lazily, so that the hook starts fast.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_agent_eval.app.cli.settings_options import Decorator, add_steering_options, require_packages

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.settings import SteeringSettings
    from ci_agent_eval.steering.proxy.server import ServeOptions

EXIT_CODES = """\b
Exit codes:
  2    usage, configuration or input error
  3    unexpected error
  130  stopped by Ctrl-C
  143  stopped by SIGTERM
"""

_MIB = 1024 * 1024
_PACKAGES = ("httpx2", "starlette", "tree_sitter", "tree_sitter_bash", "uvicorn")


def _bytes_option(flag: str, help_text: str) -> Decorator:
    return click.option(
        flag, type=click.IntRange(min=1), default=64 * _MIB, show_default=True, help=help_text
    )


def _seconds_option(flag: str, default: float, help_text: str) -> Decorator:
    positive = click.FloatRange(min=0, min_open=True)
    return click.option(flag, type=positive, default=default, show_default=True, help=help_text)


@click.command(epilog=EXIT_CODES)
@click.option(
    "--upstream",
    required=True,
    help="Base address of the provider, without a request path: https://api.openai.com",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8787,
    show_default=True,
    help="Port to listen on; 0: any free port.",
)
@click.option(
    "--session-header",
    default="x-session-id",
    show_default=True,
    help="Request header with the session id; without it, each conversation is a session.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that keeps sessions after the process ends; default: none.",
)
@_bytes_option("--max-request-bytes", "Size limit of requests to a model; larger ones are refused.")
@_bytes_option(
    "--max-response-bytes", "Size limit of reviewed responses; larger ones pass without review."
)
@_seconds_option("--connect-timeout", 10.0, "Timeout for connecting to the provider, in seconds.")
@_seconds_option("--timeout", 600.0, "Timeout for the provider's next data, in seconds.")
@add_steering_options
def proxy(store: Path | None, config: Path | None, *, enabled: bool | None, **flags: Any) -> int:
    """Proxy a model API, and block tool calls in its responses.

    \b
    agent-eval steer proxy --upstream https://api.openai.com \\
        --enable-pytest-full-suite-steering
    OPENAI_BASE_URL=http://127.0.0.1:8787/v1 your-agent

    Reviews Chat Completions, Responses and Anthropic's Messages, complete or streamed; all other
    traffic passes unchanged. Keys are passed on and never logged.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    require_packages("the proxy", "proxy", *_PACKAGES)
    from ci_agent_eval.steering.proxy import server
    from ci_agent_eval.steering.settings_loader import load_steering_settings

    settings = load_steering_settings(
        root=Path.cwd(), environ=os.environ, enabled=enabled, config=config
    )
    serving = _build_serve_options(settings, store, **flags)
    for warning in (server.get_host_warning(serving.host), _find_warning(settings)):
        if warning is not None:
            click.echo(f"agent-eval: {warning}", err=True)
    server.log_proxy_to(sys.stderr)
    ended_by = server.serve_proxy(
        serving,
        ready=lambda url: click.echo(f"Listening on {url}, in front of {flags['upstream']}"),
    )
    return _report_end(ended_by)


def _build_serve_options(
    settings: SteeringSettings, store: Path | None, **flags: Any
) -> ServeOptions:
    import time
    from uuid import uuid4

    from ci_agent_eval.model_traffic.forwarding.upstream import parse_upstream
    from ci_agent_eval.steering.policy.reactor import build_reactor
    from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
    from ci_agent_eval.steering.proxy.server import ServeOptions
    from ci_agent_eval.steering.pytest_project import build_project_finder
    from ci_agent_eval.steering.store import SteeringStore

    memory = SteeringStore(store, settings.ttl)
    find_project = build_project_finder(Path.cwd())
    reviewer = AnswerReviewer(
        lambda: build_reactor(settings, memory.for_answer(uuid4()), find_project=find_project),
        time.time,
        flags["max_request_bytes"],
        flags["max_response_bytes"],
        flags["session_header"],
    )
    return ServeOptions(
        parse_upstream(flags["upstream"], "--upstream"),
        reviewer,
        host=flags["host"],
        port=flags["port"],
        connect_s=flags["connect_timeout"],
        read_timeout_s=flags["timeout"],
    )


def _find_warning(settings: SteeringSettings) -> str | None:
    if not settings.is_idle:
        return None
    return (
        "steering is off, so that every answer passes as it is; "
        "switch it on with --enable-pytest-full-suite-steering"
    )


def _report_end(ended_by: int | None) -> int:
    if ended_by is None:
        return 0
    click.echo(f"agent-eval: the proxy was stopped by {signal.Signals(ended_by).name}", err=True)
    return 128 + ended_by
