"""What memopt says of a process, by the socket that it serves there (docs/formats/status.md)."""
import json
import os
import re
import socket
import struct
import time

_LONGEST = 1 << 20  # bytes of an answer
_NAME = re.compile(r" @(memopt-(\d+)-(\d+)-[0-9a-f]{16})$", re.MULTILINE)


class StatusError(RuntimeError):
    """The process is under memopt, but gave no answer that can be used."""


def _name_of(pid):
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        for match in _NAME.finditer(file.read()):
            if int(match.group(3)) == pid:
                return match.group(1), int(match.group(2))
    return None


def _exchange(name, user, seconds):
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(seconds)
        connection.connect("\0" + name)
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", peer)[1] != user:
            raise StatusError("its socket belongs to another user than the name says")
        connection.sendall(b"status 1\n")
        answer = b""
        while part := connection.recv(65536):
            answer += part
            if len(answer) > _LONGEST:
                raise StatusError("its answer is longer than 1 MiB")
            connection.settimeout(max(end - time.monotonic(), 0.001))
    return answer


def status(pid=None, timeout=2.0):
    """The status of this process, or of that with the number `pid`, as a dict (docs/formats/status.md has its members).

    None where there is nothing to say: the process does not run under memopt, has not called CUDA yet, or has ended. StatusError where it
    does not answer within `timeout` seconds, is another user's, or answers something else.
    """
    found = _name_of(os.getpid() if pid is None else int(pid))
    if found is None:
        return None
    try:
        answer = _exchange(*found, timeout)
    except (ConnectionRefusedError, ConnectionResetError):
        return None
    except OSError as error:
        raise StatusError(f"process {pid if pid is not None else os.getpid()} gave no answer: {error}") from error
    if not answer:
        raise StatusError("it closed the connection without an answer; it may be another user's")
    try:
        parsed = json.loads(answer)
    except ValueError as error:
        raise StatusError(f"its answer is not JSON: {error}") from error
    if not isinstance(parsed, dict) or parsed.get("format") != 1:
        raise StatusError("it answers in a format that is not known here")
    if "error" in parsed:
        raise StatusError(f"it refused: {parsed['error']}")
    return parsed
