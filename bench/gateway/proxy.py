"""The echo server behind the proxy of FastMCP, at a port."""

import sys

from fastmcp.server import create_proxy

program, port = sys.argv[1:]
proxy = create_proxy({"mcpServers": {"echo": {"command": program, "args": []}}})
proxy.run(transport="http", host="127.0.0.1", port=int(port), log_level="error")
