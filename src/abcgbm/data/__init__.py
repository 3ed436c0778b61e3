"""Any table becomes binned rows."""
