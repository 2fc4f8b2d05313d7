"""`agent-eval view`: the HTML report in a browser, also while the suite runs."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

from pathlib import Path

import click

EXIT_CODES = """\b
Exit codes:
  0    ended by Ctrl-C
  2    usage or input error, such as a folder that does not exist
  3    unexpected error
"""
MAX_PORT = 65_535


@click.command("view", epilog=EXIT_CODES)
@click.argument(
    "report_dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default="agent-eval-report",
)
@click.option(
    "--port", type=click.IntRange(0, MAX_PORT), default=0, help="Port; default: any free one."
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
def view(report_dir: Path, *, port: int, no_browser: bool) -> int:
    """Show the HTML report of REPORT_DIR in a browser, and follow a running suite.

    Serves the report on this machine only, until Ctrl-C. While a suite writes to REPORT_DIR, the
    page shows the episodes that have ended, and is loaded again when more of them have.
    """
    import webbrowser

    from ci_agent_eval.app.cli import build_job
    from ci_agent_eval.app.pipeline import render_run_page
    from ci_agent_eval.app.viewer import FollowedReport, ReportServer

    job = build_job(None, {"report_dir": str(report_dir)})
    max_cost = job.settings.budgets.total_cost_usd
    report = FollowedReport(
        report_dir,
        lambda: render_run_page(job),
        max_cost_usd=None if max_cost is None else max_cost.limit,
    )
    with ReportServer(report, port) as server:
        click.echo(f"{report_dir} at {server.address} (Ctrl-C ends)")
        if not no_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()
    return 0
