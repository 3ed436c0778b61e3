"""Tables that come in parts: files, data sets and batches that need not fit into memory.

What is learned of them is counted part by part and merged, never sketched: bins, levels and classes
are those of the whole table.
"""
