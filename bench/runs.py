# SPDX-License-Identifier: GPL-2.0
"""The files that make bench writes, for the programs that read them."""
import json
import os
import signal
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LATEST = os.path.join(os.environ.get("OUT", f"{TOP}/out"), "bench/latest")

# Half a table may be all that is wanted.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def die(text):
    sys.exit(f"bench/{os.path.basename(sys.argv[0])}: {text}")


def load(path):
    """The rows of a run."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["rows"]
    except OSError as error:
        die(f"{path}: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        die(f"{path}: not a file that make bench has written")
