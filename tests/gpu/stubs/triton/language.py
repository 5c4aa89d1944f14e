"""Named in kernels that are never run."""
constexpr = int
