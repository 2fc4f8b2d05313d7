"""Groups of commands, with the whole summary of each command in their help."""

from __future__ import annotations

import click


class SummaryGroup(click.Group):
    """A group whose help wraps the commands' summaries; click's own cuts them off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its whole summary."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(200)) for name, command in commands if command]
            )
