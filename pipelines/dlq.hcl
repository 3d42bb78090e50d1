# Dead letters, indexed for operators. A mistake here costs a view and not an event: what was refused stays in the topic.

pipeline "dlq" {
  input "kafka" {
    cluster = kafka.main
    topics  = [var.dead_letter_topic]
    group   = env("KAFKA_DLQ_GROUP_ID", "appliance-dlq-index")
    lanes   = 1

    instance_id = env("KAFKA_INSTANCE_ID", "")
  }

  output "postgres_dead_letter_index" {
    database = postgres.events
  }
}
