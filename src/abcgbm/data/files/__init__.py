"""Table files: CSV, Parquet, Feather and LibSVM to Arrow tables, whole or a part at a time.

pyarrow is needed by whoever reads a file, not by the package: `require_pyarrow` says so.
"""
