"""Model directories and array files: writes are atomic, reads are checked and run no code."""

# isort: off
from ramify.persistence.arrays import ArrayFile, LazyArrays, OpenedArrays
from ramify.persistence.arrays import are_finite, are_indices, are_offsets, checked_count, checked_number, is_increasing
from ramify.persistence.arrays import write_array_file
from ramify.persistence.atomic import atomic_writer, exclusive_writer, refuse_existing, refuse_unwritable
from ramify.persistence.atomic import scratch_directory, try_beside, write_text_atomically
from ramify.persistence.model_directory import FORMAT_VERSION, MAX_SHARDS, DirectoryStamp, StoredModel, directory_stamp
from ramify.persistence.model_directory import is_model, model_fingerprint
from ramify.persistence.model_directory import model_metadata, open_array_file, read_model, refuse_foreign_target, write_model
from ramify.persistence.model_directory import sign_model
from ramify.persistence.signatures import create_keys, trust, trust_same, trusted_keys
# isort: on

__all__ = [
    "FORMAT_VERSION",
    "MAX_SHARDS",
    "ArrayFile",
    "DirectoryStamp",
    "LazyArrays",
    "OpenedArrays",
    "StoredModel",
    "are_finite",
    "are_indices",
    "are_offsets",
    "atomic_writer",
    "checked_count",
    "checked_number",
    "create_keys",
    "directory_stamp",
    "exclusive_writer",
    "is_increasing",
    "is_model",
    "model_fingerprint",
    "model_metadata",
    "open_array_file",
    "read_model",
    "refuse_existing",
    "refuse_foreign_target",
    "refuse_unwritable",
    "scratch_directory",
    "sign_model",
    "trust",
    "trust_same",
    "trusted_keys",
    "try_beside",
    "write_array_file",
    "write_model",
    "write_text_atomically",
]
