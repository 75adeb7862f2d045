"""`DRATIO p`, Eventide's own policy: as early as a permitted share of lost rows allows."""
