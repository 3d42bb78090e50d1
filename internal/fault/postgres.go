package fault

// Default returns the table as it ships. Classes 22 and 23 are properties of a row and come back however often it is
// sent; 42 and 21 are properties of the statement; everything else may be over in a moment, and a batch that waits loses
// nothing, while an outage taken for the records' fault would empty the topic into the dead-letter topic.
func Default() Table {
	rows := append(recordRows(), defectRows()...)
	rows = append(rows, transactionRows()...)
	rows = append(rows, serverRows()...)
	rows = append(rows, Row{
		Title:   "any other error",
		Verdict: Transient,
		Why:     "Nothing says that the same batch will be refused again, and waiting loses nothing.",
		Do:      "Nothing, if it passes. If the pipeline keeps restarting, the log line has the server's message.",
	})
	return Table{Rows: rows, Identity: Identity}
}

func recordRows() []Row {
	const inspect = "Inspect the dead letter; mend the producer, or the schema, then replay it."
	return []Row{
		{
			"22", "data exception", Record, false,
			"A value that the column's type cannot hold: sent again, refused again.",
			inspect,
		},
		{
			"22P05", "untranslatable character", Record, false,
			"JSON that jsonb cannot hold, such as U+0000.",
			inspect,
		},
		{
			"22P02", "invalid text representation", Record, false,
			"JSON that PostgreSQL does not take, such as half a surrogate pair.",
			inspect,
		},
		{"22021", "character not in repertoire", Record, false, "Bytes that are not UTF-8.", inspect},
		{
			"22003", "numeric value out of range", Record, false,
			"A number beyond what PostgreSQL holds.",
			inspect,
		},
		{
			"23", "integrity constraint violation", Record, false,
			"A row that breaks a rule of the table: sent again, refused again.",
			inspect,
		},
		{
			uniqueViolation, "unique violation", Duplicate, false,
			"On the identity index the event is stored already, which is what a redelivery looks like. " +
				"On any other index the record breaks that index's rule and is dead-lettered.",
			"Nothing: duplicates are counted. Many of them outside a restart mean a producer that sends twice.",
		},
		{
			"23514", "check violation", NoPartition, false,
			"With a constraint's name the row breaks that rule and is dead-lettered. Without one no partition takes the row: " +
				"outside the maintained months that is the record's fault (outside-partitions), inside them maintenance was missed.",
			"Inside the maintained months: run the partition maintenance; the pipeline waits. Outside: inspect the dead letter.",
		},
		{
			"54000", "program limit exceeded", Record, false,
			"An index entry too long for a page: a property of that row, once it is refused alone.", inspect,
		},
		{
			"54001", "statement too complex", Record, false,
			"Nesting deeper than the server's stack: a property of that row, once it is refused alone.", inspect,
		},
	}
}

func defectRows() []Row {
	return []Row{
		{
			"42", "syntax error or access rule violation", Defect, false,
			"The statement does not fit the schema, or the role may not run it. No record is to blame, and every one would be.",
			"Run the migrations; check the role's privileges. The pipeline stalls and continues where it stood.",
		},
		{
			"21", "cardinality violation", Defect, false,
			"A statement touches one row twice: the program built it wrongly.",
			"Report it, with the log line. The pipeline stalls and continues where it stood.",
		},
	}
}

// transactionRows are about one transaction among others.
func transactionRows() []Row {
	const wait = "Nothing, if it passes: the batch is sent again and nothing is lost."
	return []Row{
		{
			"AP001", "fenced", Transient, false,
			"Another owner has claimed a partition of the batch: what this one wrote was taken back, and the other reads it again.",
			"Nothing: it happens when a group rebalances.",
		},
		{
			"0A000", "feature not supported", Transient, true,
			"A cached plan that a migration made stale: a fresh plan succeeds.",
			wait,
		},
		{
			"25P02", "in failed SQL transaction", Transient, false,
			"It repeats an earlier error and says nothing about a record.",
			wait,
		},
		{
			"40", "transaction rollback", Transient, false,
			"The server chose this transaction to give way.",
			wait,
		},
		{"40001", "serialization failure", Transient, false, "Another transaction was first.", wait},
		{
			"40P01", "deadlock detected", Transient, false,
			"Two writers met in opposite order; the other one went on.",
			wait,
		},
		{
			"55P03", "lock not available", Transient, false,
			"Somebody holds a lock for longer than lock_timeout.",
			"Find the holder in pg_locks, if it stays.",
		},
		{"57014", "query canceled", Transient, false, "A timeout, or a hand, ended the statement.", wait},
	}
}

// serverRows are about the server and the way to it.
func serverRows() []Row {
	const repair = "Repair the server; the pipeline waits and continues where it stood."
	return []Row{
		{
			"08", "connection exception", Transient, false,
			"The connection broke; what became of the transaction, the next attempt finds out.",
			repair,
		},
		{
			"28", "invalid authorization specification", Transient, false,
			"The credentials are refused: no record is to blame.",
			"Check user and password of the database.",
		},
		{
			"53", "insufficient resources", Transient, false,
			"Disk, memory or connections ran out.",
			repair,
		},
		{
			"53100", "disk full", Transient, false,
			"No space is left for the database.",
			"Free space on the database's disk; the pipeline waits and continues where it stood.",
		},
		{
			"53300", "too many connections", Transient, false,
			"Others hold all connections.",
			"Raise max_connections or lower the pools' max_conns.",
		},
		{
			"54", "program limit exceeded", Transient, false,
			"A limit of the server that no single row is known to exceed.",
			"Read the log line; lower the batch's size if it names the statement.",
		},
		{
			"57", "operator intervention", Transient, false,
			"The server or its operator ended the statement.",
			repair,
		},
		{"57P01", "admin shutdown", Transient, false, "The server shuts down.", repair},
		{
			"57P03", "cannot connect now", Transient, false,
			"The server starts, stops or recovers.",
			repair,
		},
		{"58", "system error", Transient, false, "The server's disk or files failed it.", repair},
		{
			"XX", "internal error", Transient, false,
			"The server failed, by its own word or by corruption.",
			repair,
		},
	}
}
