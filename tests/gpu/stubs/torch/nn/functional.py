"""Functions of tensors."""
import stub

relu, gelu, softmax, avg_pool2d, cross_entropy = (stub.makes("functional." + name) for name in
                                                  ("relu", "gelu", "softmax", "avg_pool2d", "cross_entropy"))
