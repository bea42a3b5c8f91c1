"""The header of a program: schema, producer, features and parents."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dtir.schema.authoring import record
from dtir.schema.refinements import ContentDigest, NonEmptyText, StableName
from dtir.schema.version import SchemaVersion

REQUIRED_FEATURE = "typed-semantics"
"""The one feature epoch that every program of this format has."""

_DIGEST = re.compile(r"[0-9a-f]{40}")


@record("blueprinting.ir.header")
class IRHeader:
    """What a program is written in, by which producer, with which features, from which parents (content digests)."""

    schema_name: StableName
    schema_version: SchemaVersion
    producer_version: NonEmptyText = "0.0.0"
    feature_set: frozenset[StableName] = frozenset()
    parent_digests: tuple[ContentDigest, ...] = ()

    def under(self, name: str, version: SchemaVersion) -> IRHeader:
        """The same header for another schema."""
        return IRHeader(name, version, self.producer_version, self.feature_set, self.parent_digests)

    def with_parents(self, *digests: str) -> IRHeader:
        """The same header with other parents."""
        return IRHeader(self.schema_name, self.schema_version, self.producer_version, self.feature_set, digests)


def make_header(
    name: str,
    version: SchemaVersion,
    *,
    parent_digests: Iterable[str] = (),
    features: Iterable[str] = (),
    producer_version: str = "0.0.0",
) -> IRHeader:
    """A header that always carries the required feature epoch."""
    feature_set = frozenset({REQUIRED_FEATURE, *features})
    return IRHeader(name, version, producer_version, feature_set, tuple(parent_digests))


def is_content_digest(value: object) -> bool:
    """True for 40 lower-case hex digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
