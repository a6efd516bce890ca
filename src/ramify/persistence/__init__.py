"""Safe files: everything is written beside its place and renamed into it, and nothing read back is trusted or run."""

from ramify.persistence.arrays import ArrayFile, LazyArrays, MappedFile, write_array_file
from ramify.persistence.atomic import (
    atomic_writer,
    exclusive_writer,
    refuse_unwritable,
    scratch_directory,
    write_text_atomically,
)
from ramify.persistence.model_directory import (
    FORMAT_VERSION,
    MAX_SHARDS,
    StoredModel,
    is_model,
    model_fingerprint,
    model_metadata,
    open_array_file,
    read_model,
    refuse_foreign_target,
    write_model,
)

__all__ = [
    "FORMAT_VERSION",
    "MAX_SHARDS",
    "ArrayFile",
    "LazyArrays",
    "MappedFile",
    "StoredModel",
    "atomic_writer",
    "exclusive_writer",
    "is_model",
    "model_fingerprint",
    "model_metadata",
    "open_array_file",
    "read_model",
    "refuse_foreign_target",
    "refuse_unwritable",
    "scratch_directory",
    "write_array_file",
    "write_model",
    "write_text_atomically",
]
