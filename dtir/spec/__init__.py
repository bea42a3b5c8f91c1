"""`DistributionSpec`: declare once how a model's fields are stored across ranks and which callables need a stand-in.

>>> spec = DistributionSpec(HaloPolicy(scatter_mode="local"))
>>> DistributionSpec.from_dict(spec.to_dict()) == spec
True
"""

from __future__ import annotations

from dtir.spec.adapters import (
    Adapter,
    FunctionAdapter,
    JitAdapter,
    MethodAdapter,
    ModuleForwardAdapter,
    OpAdapter,
    PythonAdapter,
    register_adapter_kind,
)
from dtir.spec.callables import Callables, op_qualname, resolve_op
from dtir.spec.distribution import SHARD_FIELDS, DistributionSpec
from dtir.spec.errors import SpecError
from dtir.spec.installing import Tools
from dtir.spec.model import SPEC_HALO, MLIPSpec, OutputKind, OutputSpec, Reduce
from dtir.spec.policies import GraphParallelPolicy, HaloPolicy, LocalPolicy, RefreshHaloPolicy, ShardPolicy
from dtir.spec.policy import StoragePolicy
from dtir.spec.policy_json import policy_from_dict, register_policy_kind
from dtir.spec.registry import AdapterRegistry, AdapterStatus
from dtir.spec.rows import RowLayout, Stored
from dtir.spec.transforms import ArgTransform, OutputTransform

__all__ = [
    "SHARD_FIELDS",
    "SPEC_HALO",
    "Adapter",
    "AdapterRegistry",
    "AdapterStatus",
    "ArgTransform",
    "Callables",
    "DistributionSpec",
    "FunctionAdapter",
    "GraphParallelPolicy",
    "HaloPolicy",
    "JitAdapter",
    "LocalPolicy",
    "MLIPSpec",
    "MethodAdapter",
    "ModuleForwardAdapter",
    "OpAdapter",
    "OutputKind",
    "OutputSpec",
    "OutputTransform",
    "PythonAdapter",
    "Reduce",
    "RefreshHaloPolicy",
    "RowLayout",
    "ShardPolicy",
    "SpecError",
    "StoragePolicy",
    "Stored",
    "Tools",
    "op_qualname",
    "policy_from_dict",
    "register_adapter_kind",
    "register_policy_kind",
    "resolve_op",
]
