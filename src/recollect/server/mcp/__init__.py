"""The MCP server: a memory as tools, a resource and a prompt for any client of the Model Context Protocol.

`toolsets` lists the tools; `reference` has those of the reference memory server, `reading` and `writing` our own. They
know nothing of the protocol. `protocol` connects them to the official SDK, the extra "mcp", which only it, `stdio` and
`http` import.
"""
