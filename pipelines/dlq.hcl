# Dead letters, indexed for operators. A mistake here costs a view and not an event: what was refused stays in the topic.

pipeline "dlq" {
  input "kafka" {
    cluster = kafka.main
    topics  = [var.dead_letter_topic]

    # The index has a group of its own. Another name reads the whole topic again, which counts nothing twice.
    group = env("KAFKA_DLQ_GROUP_ID", "appliance-dlq-index")

    # Dead letters are few: one batch in flight is enough.
    lanes = 1

    # As in persist: a name for static membership, unique per replica.
    instance_id = env("KAFKA_INSTANCE_ID", "")
  }

  output "postgres_dead_letter_index" {
    database = postgres.events
  }
}
