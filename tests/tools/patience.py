"""How long tests wait for what must come. Such a time ends what hangs and says nothing of speed; on a slow machine it is longer, by as many
times as tools/run-tests found the machine slower than usual (tools/lib/test_patience.py)."""
import os
import unittest

TIMES = int(os.environ.get("TEST_PATIENCE") or 1)
# So long a program waits for its planner at most: ten seconds, and on a slow machine as long as what is done in them takes there with half a
# processor.
WAIT_SECONDS = 10 if TIMES == 1 else 20 * TIMES
WAIT = str(WAIT_SECONDS)  # MEMOPT_SYNC_PLAN


def seconds(usual):
    """What `usual` seconds of a usual machine are here."""
    return usual * TIMES


def keeping_up(case):
    """For a case in which something must be found in so many seconds by the clock, as in users' programs: it says nothing where a machine
    does less in them."""
    return unittest.skipIf(TIMES > 1, f"this machine takes {TIMES} times as long as usual, and what is searched for has its time by the clock")(case)
