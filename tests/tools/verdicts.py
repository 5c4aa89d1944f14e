"""What a program of ours says of plans, and what a judge says that shares no code with it."""
import json
import subprocess

import patience


def ours(program, plans):
    """Of a program that reads a plan a line, and answers with a line each."""
    lines = "".join(json.dumps(plan) + "\n" for plan in plans)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=patience.seconds(300), check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(judge, invalid, plan):
    """Of a function that raises `invalid` where the plan does not hold."""
    try:
        return judge(plan)
    except invalid as error:
        return {"valid": False, "error": str(error)}


def shown(plan, judged, own):
    """For a message: all but our long copy of the plan."""
    return json.dumps(plan) + f"\njudge: {judged}\nours: { {field: value for field, value in own.items() if field != 'written'} }"


def agreed(case, program, judge, invalid, plans):
    """Of plans: that both say the same of whether they hold, and the judge of what the program writes again. Those that hold, each with what the
    program and the judge say of it, and a message."""
    for plan, own in zip(plans, ours(program, plans), strict=True):
        judged = theirs(judge, invalid, plan)
        message = shown(plan, judged, own)
        case.assertEqual(own["valid"], judged["valid"], message)
        if judged["valid"]:
            case.assertEqual(theirs(judge, invalid, json.loads(own["written"])), judged, message)
            yield plan, own, judged, message
