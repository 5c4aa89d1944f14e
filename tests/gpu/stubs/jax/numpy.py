"""Functions of arrays."""
import stub

zeros, mean = stub.makes("jnp.zeros"), stub.makes("jnp.mean")
