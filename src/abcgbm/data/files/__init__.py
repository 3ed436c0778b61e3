"""Table files: CSV, Parquet, Feather and LibSVM as Arrow tables, whole or in batches.

pyarrow is an optional dependency, imported by `require_pyarrow` when a file is read.
"""
