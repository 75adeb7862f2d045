"""CSV files."""

from typing import Any

from pyarrow import Table

class ReadOptions:
    def __init__(self, **options: Any) -> None: ...

class ParseOptions:
    def __init__(self, **options: Any) -> None: ...

class ConvertOptions:
    def __init__(self, **options: Any) -> None: ...

def read_csv(
    input_file: Any,
    read_options: ReadOptions | None = ...,
    parse_options: ParseOptions | None = ...,
    convert_options: ConvertOptions | None = ...,
) -> Table: ...
def write_csv(data: Table, output_file: Any) -> None: ...
