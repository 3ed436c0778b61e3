"""Communication between the processes that train one model."""
