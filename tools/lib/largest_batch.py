"""The largest batch with which digits_cnn trains on a device of a fixed size. On the simulated device only: a GPU has the size that it has."""
import os
import subprocess

CAPACITY_MIB = 64
TRAINING_IMAGES, LARGEST = 1440, 1008  # of the program: 1024
PART = 48  # images: batches are multiples of it
STEPS = 3  # of training at least: what does not fit shows in the first
TIME_LIMIT = 300  # seconds a trial may take before it counts as hung


class Failure(Exception):
    pass


OF_THE_CALLER = ("MEMOPT_LIMIT", "MEMOPT_SWAP")  # would change what is compared


def train(command, environment, batch):
    """Its last line, a checksum, or None where the device is too small."""
    environment = {**{name: value for name, value in os.environ.items() if name not in OF_THE_CALLER}, **environment, "CUDASIM_REPORT": "off"}
    epochs = -(-STEPS // (TRAINING_IMAGES // batch))
    try:
        done = subprocess.run([*command, "--epochs", str(epochs), "--batch", str(batch), "--quiet"], env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as hung:
        raise Failure(f"batch {batch}: not done after {TIME_LIMIT} s") from hung
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode == 0 and last.startswith("checksum "):
        return last
    if done.returncode != 0 and "out of memory" in done.stdout:
        return None
    raise Failure(f"batch {batch}: exit code {done.returncode}: {last or 'it said nothing'}")


def largest(command, environment):
    """(batch, checksum); (0, None): not even the smallest fits."""
    environment = {**environment, "CUDASIM_CAPACITY": f"{CAPACITY_MIB}M"}
    fits, checksum, too_many = 0, None, LARGEST // PART + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        found = train(command, environment, middle * PART)
        if found is None:
            too_many = middle
        else:
            fits, checksum = middle, found
    return fits * PART, checksum


def find(ways, native):
    """`ways`: name -> (command, environment). Name -> batch. Throws Failure where the last of them computes something else than `native`
    (command, environment) on a device that is large enough."""
    batches, batch, checksum = {}, 0, None
    for name, (command, environment) in ways.items():
        batch, checksum = largest(command, environment)
        batches[name] = batch
    if batch and train(*native, batch) != checksum:
        raise Failure(f"batch {batch} in {CAPACITY_MIB} MiB: the results differ from those on a large device")
    return batches
