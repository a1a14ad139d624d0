"""Evidence for agents: a server of the Model Context Protocol over standard input and output."""

def __getattr__(name):
    if name not in ("serve", "client_config"): raise AttributeError(f"module 'mimirag.mcp_server' has no attribute {name!r}")
    from importlib import import_module
    return getattr(import_module("mimirag.mcp_server.server" if name=="serve" else "mimirag.mcp_server.clients"), name)
