#!/usr/bin/env python3
"""Produce CloudEvents to Kafka with the Python library of the CloudEvents project.

    produce.py BOOTSTRAP TOPIC < events.jsonl

Each line is one event: {"api": "core" | "v1", "mode": "binary" | "structured", "attributes": {...}} with at most one of
"data" (any JSON), "text" (a string) and "base64" (bytes). They are sent in order to partition 0, and the exit status is 0
only when the broker has all of them. `--check` sends nothing and tells whether the libraries are there.
"""

import base64
import json
import sys
from datetime import datetime

from cloudevents.core.bindings import kafka as core_kafka
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent as CoreEvent
from cloudevents.v1 import kafka as v1_kafka
from cloudevents.v1.http import CloudEvent as V1Event
from confluent_kafka import Producer


def payload(line):
    if "text" in line:
        return line["text"]
    if "base64" in line:
        return base64.b64decode(line["base64"])
    return line.get("data")


def message(line):
    attributes, data = dict(line["attributes"]), payload(line)
    if line["api"] == "core":
        attributes["time"] = datetime.fromisoformat(attributes["time"].replace("Z", "+00:00"))
        write = core_kafka.to_binary if line["mode"] == "binary" else core_kafka.to_structured
        return write(CoreEvent(attributes, data), JSONFormat())
    write = v1_kafka.to_binary if line["mode"] == "binary" else v1_kafka.to_structured
    # The older interface marshals what it is told to: JSON unless the payload already is text or bytes.
    marshal = None if "data" in line else (lambda given: given)
    return write(V1Event(attributes, data), data_marshaller=marshal)


def main():
    if sys.argv[1:] == ["--check"]:
        return
    bootstrap, topic = sys.argv[1:]
    failures = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for text in sys.stdin:
        m = message(json.loads(text))
        producer.produce(
            topic, key=m.key, value=m.value, headers=list(m.headers.items()), partition=0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    left = producer.flush(30)
    if failures or left:
        sys.exit(f"{left} records unacknowledged, {len(failures)} refused: {failures[:1]}")


if __name__ == "__main__":
    main()
