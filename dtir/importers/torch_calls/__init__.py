"""What PyTorch's traces have in common: the same call seen at several levels, and how its arguments are read.

A collective is recorded by the operator (``c10d::allreduce_``), by ``record_param_comms``, by an annotation of the backend
(``nccl:all_reduce``, ``gloo:all_reduce``) and by its kernel. One level alone is counted: the one that says most.
"""

from dtir.importers.torch_calls.gaps import Gaps
from dtir.importers.torch_calls.operators import Argument, annotation_call, operator_call
from dtir.importers.torch_calls.tensors import joined, tensors_of

__all__ = ["Argument", "Gaps", "annotation_call", "joined", "operator_call", "tensors_of"]
