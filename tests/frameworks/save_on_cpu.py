"""A PyTorch program with its saved tensors in page-locked host memory: torch.autograd.graph.save_on_cpu around all of it.

usage: save_on_cpu.py STEPS PROGRAM [ARGUMENT]..."""
import os
import runpy
import sys

import torch

if len(sys.argv) < 3:
    sys.exit(__doc__)
steps, program = sys.argv[1:3]
sys.argv = [program, steps, *sys.argv[3:]]
sys.path[0] = os.path.dirname(os.path.abspath(program))
with torch.autograd.graph.save_on_cpu(pin_memory=True):
    runpy.run_path(program, run_name="__main__")
