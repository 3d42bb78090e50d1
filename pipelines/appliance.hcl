# What every pipeline here shares: the cluster, the database, the topics, and the listener for operators.

variable "events_topic" {
  description = "The topic of events. Must match the producers'."
  type        = string
  default     = env("KAFKA_TOPIC", "events.cloudevents.v1")
}

variable "dead_letter_topic" {
  description = "The topic of records that could not be stored."
  type        = string
  default     = env("KAFKA_DLQ_TOPIC", "events.cloudevents.v1.dlq")
}

kafka "main" {
  # Effectively mandatory. Several addresses are separated by commas.
  brokers = split(",", env("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092"))
}

postgres "events" {
  # Effectively mandatory. A postgres:// URL, or a jdbc:postgresql:// URL with user and password apart.
  url = secret(env("DATABASE_URL", "jdbc:postgresql://localhost:5432/observatory"))

  # The same database past any pooler, for migrations and leases.
  direct_url = secret(env("DATABASE_DIRECT_URL", env("DATABASE_URL", "jdbc:postgresql://localhost:5432/observatory")))

  # Used where the URL names no user.
  user = env("DATABASE_USER", "observatory")

  # Mandatory wherever the server requires a password and the URL has none.
  password = secret(env("DATABASE_PASSWORD", ""))

  write_pool {
    # Connections that write: at least one for each lane.
    max_connections = 6
  }

  read_pool {
    # Connections that only read.
    max_connections = 4
  }

  partitions {
    # Months kept ready after the current one.
    ahead = 3

    # Months kept ready before it.
    keep = 13
  }
}

dead_letters "main" {
  cluster = kafka.main
  topic   = var.dead_letter_topic

  # What the broker takes as one message; a larger dead letter is published in parts.
  max_message_bytes = 1000000
}

topic "events" {
  cluster    = kafka.main
  name       = var.events_topic
  partitions = 12
  retention  = "7d"
}

topic "dead_letters" {
  cluster        = kafka.main
  name           = var.dead_letter_topic
  partitions     = 3
  retention      = "7d"
  cleanup_policy = "delete"
}

admin {
  # Admin listener only.
  host = env("HTTP_HOST", "0.0.0.0")

  # 0 takes a free port.
  port = env("HTTP_PORT", "8080")

  auth {
    # On by default. Off opens every admin route to anyone who can reach the port.
    enabled = env("ADMIN_AUTH_ENABLED", "true")

    # HS256/384/512 or RS256/384/512. Pinned: a token's own alg is compared with it, never adopted.
    algorithm = env("ADMIN_AUTH_ALGORITHM", "HS256")

    # Mandatory with HS*, at least 32 characters. Not the key of ingestion: a leaked one must not mint admin tokens.
    secret = secret(env("ADMIN_AUTH_SECRET", ""))

    # Mandatory with RS*: X.509 SPKI PEM; armour and \n escapes are both accepted.
    public_key = env("ADMIN_AUTH_PUBLIC_KEY", "")

    # When set, iss must equal it.
    issuer = env("ADMIN_AUTH_ISSUER", "")

    # When set, aud must contain it.
    audience = env("ADMIN_AUTH_AUDIENCE", "")

    # Empty drops the scope check on reads and keeps signature verification.
    read_scope = env("ADMIN_AUTH_READ_SCOPE", "admin:read")

    # Also satisfies a read route.
    write_scope = env("ADMIN_AUTH_WRITE_SCOPE", "admin:write")

    # Tolerance on exp and nbf: for so long a withdrawn token still works.
    leeway = duration(env("ADMIN_AUTH_LEEWAY", "30 seconds"))
  }
}

replay {
  # Whether a replay may be committed. Dry runs and reading stay available either way.
  enabled = env("REPLAY_ENABLED", "true")

  # Ceiling of one listing or one replay. A request above it is refused, never clamped.
  max_records = env("REPLAY_MAX_RECORDS", "200")

  # Generations of replay that any one record may survive: the bound on the poison loop.
  max_attempts = env("REPLAY_MAX_ATTEMPTS", "3")

  # How long one read of the topic may take before it answers with what it has.
  poll_timeout = duration(env("REPLAY_POLL_TIMEOUT", "5 seconds"))
}

lag {
  # Lag is a trend: sampling it faster than it is scraped buys only broker load.
  refresh_interval = duration(env("LAG_REFRESH_INTERVAL", "20 seconds"))

  # Bounds each question to the broker, and the reachability probe.
  request_timeout = duration(env("LAG_REQUEST_TIMEOUT", "5 seconds"))
}

shutdown {
  # How long readiness is false before anything stops, so that traffic is routed elsewhere first.
  drain_delay = duration(env("SHUTDOWN_DRAIN_DELAY", "5 seconds"))

  # The bound of the whole way down.
  timeout = "40s"
}

telemetry {
  # DEBUG, INFO, WARN or ERROR.
  log_level = env("LOG_LEVEL", "INFO")

  # The label service of every metric.
  service = env("SERVICE_NAME", "appliance")

  # The label version; empty takes the binary's.
  version = env("SERVICE_VERSION", "")

  # The label instance; empty takes the host's name.
  instance = env("HOSTNAME", "")
}
