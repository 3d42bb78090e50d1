# The main job: every record of the events topic becomes a row or a dead letter, and only then is its offset committed.

pipeline "persist" {
  # How long a stop may take to finish, write and commit what is in flight.
  drain_timeout = duration(env("CONSUMER_DRAIN_TIMEOUT", "30 seconds"))

  input "kafka" {
    cluster = kafka.main
    topics  = [var.events_topic]

    # Changing it reads everything again from the earliest record.
    group = env("KAFKA_GROUP_ID", "cobalt-cloudevents-v1")

    # Batches in flight at once; a partition is never in two.
    lanes = 4

    batch {
      # Records of a batch without backlog.
      size = env("CONSUMER_BATCH_SIZE", "500")

      # Records of a batch under backlog: at least size.
      max_size = max(5000, tonumber(env("CONSUMER_BATCH_SIZE", "500")))

      # The latency floor under sparse traffic: an event is durable this long after it arrives, and not before.
      window = duration(env("CONSUMER_BATCH_WINDOW", "250 millis"))
    }

    commit {
      # Offsets are committed after so many durable records, or after max_interval.
      max_batch = 1000

      # Offsets of durable records are committed at the latest after this time.
      max_interval = "5s"

      # Commits under way at once. More than one could rewind the group, and is refused.
      parallelism = 1
    }

    # A name for static membership, unique per replica: a restart then costs no rebalance.
    instance_id = env("KAFKA_INSTANCE_ID", "")

    # Properties of a Kafka consumer by their usual names. Those that decide whether records are lost are refused.
    properties = {}
  }

  processor "cloudevents_decode" {}

  output "postgres_ledger" {
    database     = postgres.events
    dead_letters = dead_letters.main

    # Whole-batch attempts before the run ends and is restarted.
    attempts = env("CONSUMER_WRITE_ATTEMPTS", "3")

    # Deliberately short: the real backoff is the restart, which also gives up the Kafka session.
    retry_delay = duration(env("CONSUMER_RETRY_DELAY", "200 millis"))

    # The months that have a partition: an event of another month becomes a dead letter.
    keep_months  = postgres.events.partitions.keep
    ahead_months = postgres.events.partitions.ahead
  }

  restart {
    # The first wait after a failure.
    min_backoff = "1s"

    # The longest.
    max_backoff = "30s"

    # The share of a wait that is random.
    jitter = 0.2

    budget {
      # More restarts than this within the time below, and the pipeline has failed, visibly and for good.
      restarts = 50

      # The time in which restarts are counted.
      within = "10m"
    }
  }
}
