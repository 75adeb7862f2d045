"""SQL statements that bound plans become, and how they treat rows that fail."""
