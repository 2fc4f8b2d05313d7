"""A gallery as an MCP server over stdio: a tool that returns an image, resources and prompts."""

import base64
import os

from mcp.server.mcpserver import Image, MCPServer

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

server = MCPServer("gallery")


@server.tool()
def show_picture(title: str) -> list[str | Image]:
    """Show a picture."""
    return [f"This is {title}.", Image(data=PIXEL, format="png")]


@server.resource("gallery://opening-hours", mime_type="text/plain")
def get_opening_hours() -> str:
    """When the gallery is open."""
    return "10:00 to 18:00"


@server.resource("gallery://process", mime_type="text/plain")
def get_process() -> str:
    """Return the server's process id."""
    return str(os.getpid())


@server.resource("gallery://crash", mime_type="text/plain")
def crash() -> str:
    """End the process in the middle of a request."""
    os._exit(3)


@server.resource("gallery://pictures/{title}", mime_type="image/png")
def get_picture(title: str) -> bytes:
    """Return a picture by its title."""
    return PIXEL if title == "pixel" else b""


@server.prompt()
def describe_picture(title: str, style: str = "short") -> str:
    """Ask for the description of a picture."""
    return f"Describe {title} in a {style} text."


if __name__ == "__main__":
    server.run()
