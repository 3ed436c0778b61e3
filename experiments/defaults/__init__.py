"""Defaults by evidence: a pool of tables, our candidates and the peers with theirs."""
