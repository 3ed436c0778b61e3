"""The trial of defaults: a pool of tables, our candidates, and the peers with their defaults."""
