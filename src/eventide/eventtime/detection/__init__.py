"""What sources usually do, and when one does otherwise: silences, clocks that jump or drift, broken promises."""
