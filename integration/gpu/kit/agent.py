"""What memopt says about a process: asked of its agent while it runs (docs/formats/status.md), and of the lines it prints."""
import json
import os
import re
import socket

WAIT = 2  # seconds for an answer


def _names(pid):
    prefix = f"@memopt-{os.geteuid()}-{pid}-"
    try:
        with open("/proc/net/unix", encoding="ascii", errors="replace") as table:
            return sorted({line.split()[-1] for line in table if prefix in line})
    except OSError:
        return []


def status(pid):
    """The agent's answer, or None where there is none to ask."""
    for name in _names(pid):
        try:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(WAIT)
                peer.connect("\0" + name[1:])
                peer.sendall(b"status 1\n")
                answer = b""
                while len(answer) <= 1 << 20:
                    piece = peer.recv(1 << 16)
                    if not piece:
                        break
                    answer += piece
            found = json.loads(answer)
            if isinstance(found, dict) and "state" in found:
                return found
        except (OSError, ValueError):
            continue
    return None


class Watch:
    """Keeps the last answer of a process that may end at any moment."""

    def __init__(self):
        self.last = None

    def __call__(self, pid):
        self.last = status(pid) or self.last


def live_at(errors):
    """The iteration at which the plan went live, by the line for people; None if it never did."""
    found = re.search(r"^memopt: plan(?:ned| live) at iteration (\d+)", errors, re.MULTILINE)
    return int(found.group(1)) if found else None


def said(errors):
    return [line for line in errors.splitlines() if line.startswith("memopt: ")][:20]
