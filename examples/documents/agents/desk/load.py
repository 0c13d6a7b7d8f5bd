"""Adds text files to the library: python3 agents/desk/load.py <file>…

AGENTD_SOCKET names the control socket of desk, in whose name it calls.
"""

import sys
from pathlib import Path

import agentd

from generated import library

client = library.Client()
for name in sys.argv[1:]:
    path = Path(name)
    try:
        added = agentd.unwrap(client.add_document({"title": path.stem, "text": path.read_text()}))
    except agentd.ViolationError as e:
        sys.exit(f"{name}: {e}")
    print(added["id"], "known" if added["known"] else "new", added["summary"])
