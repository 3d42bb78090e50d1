package pipeline

import "cmp"

func decodeKafka(name string, n *node) Kafka {
	k := Kafka{Name: name, Brokers: n.get("brokers").texts(), ClientID: n.str("client_id"), ConnectTimeout: n.dur("connect_timeout")}
	if tls := n.get("tls"); tls != nil {
		k.TLS = &TLS{CAFile: tls.str("ca_file"), CertFile: tls.str("cert_file"), KeyFile: tls.str("key_file"), ServerName: tls.str("server_name")}
	}
	if sasl := n.get("sasl"); sasl != nil {
		k.SASL = &SASL{Mechanism: sasl.str("mechanism"), Username: sasl.str("username"), Password: sasl.str("password")}
	}
	return k
}

func decodePostgres(name string, n *node) Postgres {
	return Postgres{
		Name: name, URL: n.str("url"), DirectURL: cmp.Or(n.str("direct_url"), n.str("url")),
		User: n.str("user"), Password: n.str("password"), Pooling: n.str("pooling"), ConnectTimeout: n.dur("connect_timeout"),
		Write: decodePool(n.get("write_pool")), Read: decodePool(n.get("read_pool")),
		Partitions: Partitions{Ahead: n.num("partitions.ahead"), Keep: n.num("partitions.keep")},
	}
}

func decodePool(n *node) Pool {
	return Pool{
		MaxConnections: n.num("max_connections"), AcquireTimeout: n.dur("acquire_timeout"),
		MaxLifetime: n.dur("max_lifetime"), MaxIdleTime: n.dur("max_idle_time"),
	}
}

func decodeDeadLetters(name string, n *node) DeadLetters {
	return DeadLetters{
		Name: name, Cluster: n.str("cluster"), Topic: n.str("topic"),
		MaxMessageBytes: n.num("max_message_bytes"), Timeout: n.dur("timeout"),
	}
}

func decodeTopic(label string, n *node) Topic {
	return Topic{
		Label: label, Name: n.str("name"), Cluster: n.str("cluster"), Partitions: n.num("partitions"),
		Replication: n.num("replication"), Retention: n.dur("retention"), CleanupPolicy: n.str("cleanup_policy"),
	}
}

func decodeAdmin(n *node) *Admin {
	auth := n.get("auth")
	return &Admin{Host: n.str("host"), Port: n.num("port"), Auth: Auth{
		Enabled: auth.flag("enabled"), Algorithm: auth.str("algorithm"), Secret: auth.str("secret"), PublicKey: auth.str("public_key"),
		Issuer: auth.str("issuer"), Audience: auth.str("audience"),
		ReadScope: auth.str("read_scope"), WriteScope: auth.str("write_scope"), Leeway: auth.dur("leeway"),
	}}
}

func decodeReplay(n *node) Replay {
	return Replay{Enabled: n.flag("enabled"), MaxRecords: n.num("max_records"), MaxAttempts: n.num("max_attempts"), PollTimeout: n.dur("poll_timeout")}
}

func decodeLag(n *node) Lag {
	return Lag{RefreshInterval: n.dur("refresh_interval"), RequestTimeout: n.dur("request_timeout")}
}

func decodeShutdown(n *node) Shutdown {
	return Shutdown{DrainDelay: n.dur("drain_delay"), Timeout: n.dur("timeout")}
}

func decodeTelemetry(n *node) Telemetry {
	return Telemetry{LogLevel: n.str("log_level"), Service: n.str("service"), Version: n.str("version"), Instance: n.str("instance")}
}

func decodeRestart(n *node) Restart {
	return Restart{
		MinBackoff: n.dur("min_backoff"), MaxBackoff: n.dur("max_backoff"), Jitter: n.decimal("jitter"),
		Restarts: n.num("budget.restarts"), Within: n.dur("budget.within"),
	}
}
