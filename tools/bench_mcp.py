#!/usr/bin/env python
"""The server for agents beside a bare one on the same SDK: python tools/bench_mcp.py PROFILE QUERY ...

From start to the first answer over standard streams, seven times each in turn, medians; then the warm search of our server, ten rounds of the queries.
"""
import json, os, statistics, subprocess, sys, time

BARE = 'from mcp.server import MCPServer\nserver = MCPServer("bare")\n@server.tool()\ndef nothing() -> str:\n    "Nothing"\n    return ""\nserver.run()\n'
HELLO = [dict(jsonrpc="2.0", id=0, method="initialize", params=dict(protocolVersion="2025-11-25", capabilities={}, clientInfo=dict(name="bench", version="1"))), dict(jsonrpc="2.0", method="notifications/initialized")]

class Server:
    "A server that is being talked to"
    def __init__(self, *command: str):
        self.began,self.times,self.number = time.perf_counter(), os.times(), 0
        self.process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._send(*HELLO)

    def _send(self, *messages: dict):
        self.process.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages).encode())
        self.process.stdin.flush()

    def call(self, name: str, **arguments) -> dict:
        self.number += 1
        self._send(dict(jsonrpc="2.0", id=self.number, method="tools/call", params=dict(name=name, arguments=arguments)))
        while (line := self.process.stdout.readline()):
            if (message := json.loads(line)).get("id")==self.number: return message["result"]
        sys.exit("bench_mcp: the server ended; is the extra installed? pip install 'mimirag[mcp]'")

    def end(self) -> tuple[float, float]:
        "Wall and CPU seconds since the start"
        wall = time.perf_counter()-self.began
        self.process.stdin.close()
        self.process.wait()
        now = os.times()
        return wall, now.children_user+now.children_system-self.times.children_user-self.times.children_system

def first_answer(*command: str, tool: str, **arguments) -> tuple[float, float]:
    server = Server(*command)
    server.call(tool, **arguments)
    return server.end()

def main():
    if len(sys.argv) < 3: sys.exit(__doc__)
    profile,*queries = sys.argv[1:]
    ours = ("-m", "mimirag", "mcp", "-p", profile)
    rounds = [(first_answer("-c", BARE, tool="nothing"), first_answer(*ours, tool="search", query=queries[0])) for _ in range(7)]
    for name,column in zip(("bare", "ours"), zip(*rounds)): print(f"{name}: start to first answer {statistics.median(wall for wall,_ in column):.2f} s wall, {statistics.median(cpu for _,cpu in column):.2f} s CPU")
    server,times = Server(*ours), []
    for n in range(11):
        for query in queries:
            began = time.perf_counter()
            server.call("search", query=query)
            if n: times.append(1000*(time.perf_counter()-began))
    server.end()
    print(f"warm search: p50 {statistics.median(times):.1f} ms, p95 {sorted(times)[int(.95*len(times))]:.1f} ms")

if __name__=="__main__": main()
