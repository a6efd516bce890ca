"""Safe files: everything is written beside its place and renamed into it, and nothing read back is trusted or run."""

from ramify.persistence.arrays import ArrayFile, ArraysToMake, MappedFile, write_array_file
from ramify.persistence.atomic import atomic_writer, only_writer, refuse_unwritable, scratch_beside, write_text_atomically
from ramify.persistence.model_directory import (
    FORMAT_VERSION,
    MAX_SHARDS,
    StoredModel,
    is_model,
    model_about,
    model_fingerprint,
    open_array_file,
    read_model,
    refuse_foreign_target,
    write_model,
)

__all__ = [
    "FORMAT_VERSION",
    "MAX_SHARDS",
    "ArrayFile",
    "ArraysToMake",
    "MappedFile",
    "StoredModel",
    "atomic_writer",
    "is_model",
    "model_about",
    "model_fingerprint",
    "only_writer",
    "open_array_file",
    "read_model",
    "refuse_foreign_target",
    "refuse_unwritable",
    "scratch_beside",
    "write_array_file",
    "write_model",
    "write_text_atomically",
]
