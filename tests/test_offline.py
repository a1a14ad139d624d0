"The tests run without a network, and here is the proof; so do the processes that they start"
import os, socket, subprocess, sys
import pytest

needs_check = pytest.mark.skipif("MIMIRAG_OFFLINE" not in os.environ, reason="run through 'make test', which switches the network off")

REACH = """
import socket, sys
said = []
for attempt in (lambda: socket.create_connection(("192.0.2.1", 80), timeout=3), lambda: socket.create_connection(("1.1.1.1", 443), timeout=3), lambda: socket.getaddrinfo("pypi.org", 443)):
    try:
        attempt()
        said.append("reached")
    except OSError as error: said.append("refused at once" if not isinstance(error, TimeoutError) else "timed out")
print(said)
"""

@needs_check
def test_there_is_no_network():
    for attempt in (lambda: socket.create_connection(("1.1.1.1", 443), timeout=3), lambda: socket.getaddrinfo("pypi.org", 443)):
        with pytest.raises(OSError) as refused: attempt()
        assert not isinstance(refused.value, TimeoutError), "it was refused at once, not waited for"

@needs_check
def test_nor_in_processes_that_are_started():
    assert subprocess.run([sys.executable, "-c", REACH], capture_output=True, text=True).stdout.strip()==str(["refused at once"]*3)

@needs_check
def test_loopback_works():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()): pass
