"""Where DuckDB's and Spark's own types look for those of Arrow."""

from pyarrow import Array as Array
from pyarrow import ChunkedArray as ChunkedArray
from pyarrow import DataType as DataType
from pyarrow import Field as Field
from pyarrow import RecordBatch as RecordBatch
from pyarrow import RecordBatchReader as RecordBatchReader
from pyarrow import Scalar as Scalar
from pyarrow import Schema as Schema
from pyarrow import Table as Table
