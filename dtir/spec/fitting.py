"""Whether a declaration and a model go together, and what a program keeps of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtir.spec.distribution import DistributionSpec
from dtir.spec.errors import SpecError
from dtir.spec.model import MLIPSpec, OutputKind
from dtir.spec.op_adapter import OpAdapter
from dtir.spec.outline import ModelOutline
from dtir.spec.partition import Partition


def check_outputs(spec: MLIPSpec, outline: ModelOutline) -> None:
    """Raise unless the spec speaks of outputs that the model has.

    Raises:
        SpecError: naming the field.
    """
    said = {**dict.fromkeys(spec.owned_only_outputs, "owned_only_outputs")}
    said.update(dict.fromkeys(spec.all_reduce_outputs, "all_reduce_outputs"))
    for name, where in said.items():
        if name not in outline.outputs:
            raise SpecError(where, f"model {outline.name} has no output {name!r}", "spec.lower")
    for name, kind in spec.output_kinds.items():
        wanted = outline.kinds.get(name)
        if wanted is not None and kind not in (wanted, OutputKind.UNKNOWN):
            raise SpecError(
                "output_kinds", f"output {name!r} is {wanted.value}, the spec says {kind.value}", "spec.lower"
            )


def check_adapters(adapters: Mapping[str, tuple[int, OpAdapter]], outline: ModelOutline) -> None:
    """Raise unless adapters name operands and results that the operations of the model have.

    Raises:
        SpecError: naming the field.
    """
    stages = {stage.op: stage for stage in outline.stages}
    for target, (number, adapter) in adapters.items():
        stage = stages.get(target)
        if stage is None:
            continue  # an operation of another model: a spec may serve several
        for positions, columns, what in (
            (adapter.arg_transforms, stage.reads, "arg_transforms"),
            (adapter.output_transforms, stage.makes, "output_transforms"),
        ):
            beyond = [at for at in positions if at >= len(columns)]
            if beyond:
                raise SpecError(
                    f"core.custom_ops.{number}.{what}",
                    f"{target} has {len(columns)} {'operands' if what == 'arg_transforms' else 'results'}, not {beyond[0] + 1}",
                    "spec.lower",
                )


def declared(core: DistributionSpec, partition: Partition, outline: ModelOutline) -> dict[str, Any]:
    """What the program keeps of its declaration, for people: fields, policy, adapters, and how the box was cut."""
    policy = core.storage.to_dict()
    modes = ", ".join(f"{key} {value}" for key, value in policy.items() if key != "kind")
    stages = {stage.op for stage in outline.stages}
    adapters = [
        f"{one.kind} {one.target}: "
        + ("lowered" if one.target in stages else "pending, no stage of this model uses it")
        for one in core.installed_order
    ]
    return {
        "lowered.model": outline.name,
        "lowered.policy": f"{policy['kind']} ({modes})" if modes else str(policy["kind"]),
        "lowered.fields": list(core.shard_fields),
        "lowered.adapters": adapters,
        "lowered.grid": list(partition.grid),
        "lowered.bins": list(partition.system.bins),
        "lowered.ghost_bins": list(partition.ghost_bins),
        "lowered.atoms": list(partition.layout.sizes),
    }
