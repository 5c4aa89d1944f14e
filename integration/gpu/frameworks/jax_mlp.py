#!/usr/bin/env python3
"""Trains a multilayer perceptron on random data with JAX; one compiled function a step."""
import hashlib
import os

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_gpu_deterministic_ops=true").strip()

import report  # noqa: E402

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    report.missing(f"JAX: {error}")


def make(key, sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        key, one = jax.random.split(key)
        layers.append((jax.random.normal(one, (inputs, outputs)) * (2.0 / inputs) ** 0.5, jnp.zeros((outputs,))))
    return layers


def loss_of(layers, x, y):
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return jnp.mean((x @ weight + bias - y) ** 2)


@jax.jit
def update(layers, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(layers, x, y)
    return loss, jax.tree_util.tree_map(lambda value, gradient: value - 1e-3 * gradient, layers, gradients)


def statistics_of(device):
    found = device.memory_stats() or {}
    return {key: found[key] for key in ("bytes_in_use", "peak_bytes_in_use", "bytes_reserved", "pool_bytes") if key in found}


def main():
    options = report.arguments(__doc__)
    device = jax.devices()[0]
    if device.platform not in ("gpu", "cuda"):
        report.missing(f"JAX finds no CUDA device, only {device.platform}")
    sizes, rows = ((8, 16, 4), 4) if options.small else ((1024, 8192, 8192, 8192, 256), 4096)
    layers = make(jax.random.PRNGKey(1998), sizes)
    loop = report.Loop("jax_mlp", options, framework=f"jax {jax.__version__}",
                       allocator=os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default"))
    kept = {"layers": layers}

    def step(iteration):
        x_key, y_key = jax.random.split(jax.random.PRNGKey(iteration))
        x, y = jax.random.normal(x_key, (rows, sizes[0])), jax.random.normal(y_key, (rows, sizes[-1]))
        loss, kept["layers"] = update(kept["layers"], x, y)
        return float(loss)

    def checksum():
        digest = hashlib.sha256()
        for array in jax.tree_util.tree_leaves(kept["layers"]):
            digest.update(jax.device_get(array).tobytes())
        return digest.hexdigest()[:16]

    loop.run(step, lambda: statistics_of(device), checksum)


if __name__ == "__main__":
    main()
