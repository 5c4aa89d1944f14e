"""Text traces of many blocks, made up, the same for the same seed."""
import random

SIZES = (512, 4096, 65536, 1 << 20, 3 << 20)


def write(path, blocks, iterations=3, seed=1, live=300):
    """Iterations that are all the same, of so many blocks each: written, read and freed."""
    chance, lines, alive = random.Random(seed), [], []
    for number in range(blocks):
        size = chance.choice(SIZES) * chance.randint(1, 4)
        pointer = f"{0x1000 + number * 16:#x}"
        lines += [f"Malloc {pointer} {size}", f"Mutable {pointer} {size}"]
        alive.append((pointer, size))
        while len(alive) > live or (alive and chance.random() < 0.3):
            pointer, size = alive.pop(chance.randrange(len(alive)))
            lines += [f"Read {pointer} {size}", f"Free {pointer} {size}"]
    lines += [f"Free {pointer} {size}" for pointer, size in alive]
    with open(path, "w") as file:
        for at, line in enumerate(lines * iterations):
            file.write(f"{line} {1000 * at}\n")
