"""`python -m attnviz.ui`, with a line in the file AUDIT for each address that is asked for."""

import os
import runpy
import sys

AUDIT = os.environ["AUDIT"]
HEARD = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname")


def hear(event, args):
    if event in HEARD:
        target = args[1] if event in ("socket.connect", "socket.sendto") else args[0]
        with open(AUDIT, "a") as file:
            file.write(f"{event} {target!r}\n")


sys.addaudithook(hear)
runpy.run_module("attnviz.ui", run_name="__main__", alter_sys=True)
