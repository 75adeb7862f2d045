"""Topics of Kafka as inputs of the local engine."""

from importlib.util import find_spec

from eventide.errors import DeclarationError

if find_spec("confluent_kafka") is None:
    raise DeclarationError("FROM kafka needs confluent-kafka: pip install 'eventide[kafka]', or use the Spark engine")
