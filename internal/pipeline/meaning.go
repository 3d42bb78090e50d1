package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// The components that the checks of meaning know by name.
const (
	ledgerOutput = "postgres_ledger"
	indexOutput  = "postgres_dead_letter_index"
)

// shortestSecret is the least length of an HMAC key: 32 characters, as RFC 7518 §3.2 asks 256 bits of HS256.
const shortestSecret = 32

// meaning checks what is well-formed and cannot be meant, across blocks and pipelines.
func (c *compiler) meaning() {
	c.sharedGroups()
	c.auth()
	c.pooling()
	c.restarts()
	for i := range c.bound {
		b := &c.bound[i]
		if b.kafka != nil {
			c.deadLetterLoop(b)
			c.noDeadLetters(b)
			c.lanesOf(b)
		}
		if b.has(Output, ledgerOutput) {
			c.ledger(b)
		}
		c.outermost(b)
		c.drain(b)
	}
	c.compacted()
}

// outermost refuses a kafka input or a ledger inside another component. The subscription belongs to the supervisor, which
// hands it to the pipeline's input; and a ledger accounts for whole batches, of which a router would pass it a part.
func (c *compiler) outermost(b *boundPipeline) {
	for _, part := range b.components {
		switch {
		case part.kind == Input && part.name == blockKafka && part.body != b.node.get("input").own(part.name):
			c.fail(CodeNotOutermost, part.at, "A kafka input inside another",
				"The group's subscription outlives the stream and is handed to the pipeline's input: make kafka the input itself, with several topics or several pipelines.")
		case part.kind == Output && part.name == ledgerOutput && part.body != b.node.get("output").own(part.name):
			c.fail(CodeNotOutermost, part.at, "A ledger inside another output",
				"The ledger accounts for whole batches: records that are routed elsewhere would become dead letters. Make it the output itself, and a pipeline of its own for the rest.")
		}
	}
}

func (b *boundPipeline) has(kind Kind, name string) bool {
	return slices.ContainsFunc(b.components, func(p boundComponent) bool { return p.kind == kind && p.name == name })
}

// sharedGroups refuses two pipelines of one group: each would see only a part of the records.
func (c *compiler) sharedGroups() {
	first := map[[2]string]*boundPipeline{}
	for i := range c.bound {
		b := &c.bound[i]
		if b.kafka == nil || b.kafka.str("group") == "" {
			continue
		}
		key := [2]string{b.kafka.str("cluster"), b.kafka.str("group")}
		if earlier, taken := first[key]; taken {
			c.fail(CodeSharedGroup, b.kafka.get("group").at, "Shared consumer group",
				"Group %q of this cluster is also that of %s (group at %s): each would see a part of the records.",
				key[1], earlier.describe(), position(earlier.kafka.get("group").at))
			continue
		}
		first[key] = b
	}
}

// letters returns the dead_letters resources that a pipeline publishes to.
func (c *compiler) letters(b *boundPipeline) (found []DeadLetters, at []hcl.Range) {
	for _, u := range b.uses {
		if d, ok := c.config.DeadLetters[u.to.Name]; ok && u.to.Kind == blockDeadLetters {
			found, at = append(found, d), append(at, u.at)
		}
	}
	return found, at
}

func (c *compiler) deadLetterLoop(b *boundPipeline) {
	found, at := c.letters(b)
	for i, d := range found {
		if d.Topic != "" && d.Cluster == b.kafka.str("cluster") && slices.Contains(b.kafka.get("topics").texts(), d.Topic) {
			c.fail(CodeDeadLetterLoop, at[i], "Dead letters to their own origin",
				"dead_letters.%s is topic %q, which this pipeline reads: each dead letter would come back and fail again.", d.Name, d.Topic)
		}
	}
}

// noDeadLetters warns of a pipeline whose failed messages have nowhere to go. One that indexes dead letters has not: its
// records are the dead letters.
func (c *compiler) noDeadLetters(b *boundPipeline) {
	if c.failed() { // a reference that was refused would look like none
		return
	}
	if found, _ := c.letters(b); len(found) > 0 || b.has(Output, indexOutput) || b.has(Output, "drop") {
		return
	}
	for _, d := range c.config.DeadLetters {
		if slices.Contains(b.kafka.get("topics").texts(), d.Topic) {
			return
		}
	}
	c.warn(CodeNoDeadLetters, b.at, "No way to a dead letter",
		"A message that fails in pipeline %q is given back to the input and stops its partition until it succeeds.", b.name)
}

// lanesOf warns where lanes would wait for each other's connections.
func (c *compiler) lanesOf(b *boundPipeline) {
	for _, u := range b.uses {
		db, ok := c.config.Postgres[u.to.Name]
		lanes := b.kafka.num("lanes")
		if ok && u.to.Kind == blockPostgres && db.Write.MaxConnections > 0 && lanes > db.Write.MaxConnections {
			c.warn(CodeLanesWait, b.kafka.get("lanes").at, "More lanes than connections",
				"%d lanes write over %d connections of postgres.%s: the others wait.", lanes, db.Write.MaxConnections, db.Name)
		}
	}
}

// ledger checks what stands ahead of a ledger.
func (c *compiler) ledger(b *boundPipeline) {
	if start := b.kafka.get("start"); b.kafka != nil && strings.EqualFold(start.text(), "latest") {
		c.fail(CodeLatestBeforeStore, start.at, "A ledger that begins at the end",
			"With start = \"latest\" a new group skips every record that was published before it.")
	}
	c.decoded(b)
	for _, part := range b.components {
		if why := divides(part.name); part.kind == Processor && why != "" {
			c.fail(CodeBatchDivided, part.at, "A batch divided ahead of a ledger",
				"Processor %q %s. A batch reaches the ledger as it was read, or good records become dead letters.", part.name, why)
		}
		if why := drops(part); part.kind == Processor && why != "" {
			c.warn(CodeRecordsDropped, part.at, "Records dropped ahead of a ledger",
				"Processor %q %s. The ledger accounts for every record: one that is missing becomes a dead letter.", part.name, why)
		}
	}
}

// decoded refuses a ledger that would get messages it can't account for.
func (c *compiler) decoded(b *boundPipeline) {
	has := slices.ContainsFunc(b.components, func(part boundComponent) bool {
		return part.kind == Processor && part.name == "cloudevents_decode"
	})
	switch {
	case b.kafka == nil:
		c.fail(CodeUndecoded, b.at, "A ledger without a kafka input", "The ledger of pipeline %q accounts for records and their offsets: only the kafka input has them.", b.name)
	case !has:
		c.fail(CodeUndecoded, b.at, "A ledger without a decoder", "Pipeline %q has no processor \"cloudevents_decode\": the ledger writes the events that it makes of records.", b.name)
	}
}

// divides says how a processor of the engine's core breaks up a batch or makes messages of no record, "" where it doesn't.
func divides(name string) string {
	switch name {
	case "split", "group_by", "group_by_value":
		return "divides a batch"
	case "archive", "unarchive", "insert_part":
		return "makes other messages of it"
	}
	return ""
}

// drops says how a processor of the engine's core changes the number of messages, "" where it doesn't.
func drops(part boundComponent) string {
	switch part.name {
	case "dedupe", "bounds_check", "select_parts":
		return "drops messages"
	case "mapping", "mutation", "bloblang":
		if deletesRoot(part.body.text()) {
			return "deletes messages"
		}
	}
	return ""
}

// deletesRoot reports whether a mapping assigns deleted() to the whole message. An assignment reaches to the line before
// the next one.
func deletesRoot(mapping string) bool {
	assignment := regexp.MustCompile(`^\s*(root|this|meta|let|map)\b[^=]*=[^=]`)
	whole := regexp.MustCompile(`^\s*root\s*=[^=]`)
	inside := false
	for line := range strings.Lines(mapping) {
		line, _, _ = strings.Cut(line, "#")
		if assignment.MatchString(line) {
			inside = whole.MatchString(line)
		}
		if inside && strings.Contains(line, "deleted()") {
			return true
		}
	}
	return false
}

func (c *compiler) drain(b *boundPipeline) {
	drain, down := b.node.dur("drain_timeout"), c.config.Shutdown
	if drain+down.DrainDelay > down.Timeout {
		at := b.at
		if n := b.node.get("drain_timeout"); n != nil {
			at = n.at
		}
		c.warn(CodeDrainTooLong, at, "The drain does not fit into the shutdown",
			"drain_delay %s and drain_timeout %s are longer than the shutdown's timeout of %s.", down.DrainDelay, drain, down.Timeout)
	}
}

// restarts refuses a wait that would end before it began.
func (c *compiler) restarts() {
	for i := range c.bound {
		n := c.bound[i].node.get("restart")
		if r := decodeRestart(n); r.MaxBackoff < r.MinBackoff {
			c.fail(CodeInvalidValue, n.get("max_backoff").at, "Invalid value", "max_backoff %s is shorter than min_backoff %s.", r.MaxBackoff, r.MinBackoff)
		}
	}
}

func (c *compiler) pooling() {
	for name, db := range c.config.Postgres {
		n := c.nodes[blockPostgres+"."+name]
		if db.Pooling == "transaction" && n.get("direct_url") == nil {
			c.fail(CodePooledDirect, n.get("pooling").at, "No way past the pooler",
				"Migrations and leases need a session, which pooling = \"transaction\" does not give: set direct_url.")
		}
	}
}

func (c *compiler) compacted() {
	for _, d := range c.config.DeadLetters {
		for _, t := range c.config.Topics {
			n := c.nodes[blockTopic+"."+t.Label].get("cleanup_policy")
			if t.Name == d.Topic && t.Cluster == d.Cluster && strings.Contains(t.CleanupPolicy, "compact") && n != nil {
				c.warn(CodeCompactedLetters, n.at, "Compacted dead letters",
					"Dead letters are keyed by origin: after the origin topic was recreated, new ones overwrite old ones.")
			}
		}
	}
}

// auth refuses keys that are missing or short, and says when there is no lock at all.
func (c *compiler) auth() {
	if c.config.Admin == nil {
		return
	}
	auth, n := c.config.Admin.Auth, c.nodes[blockAdmin].get("auth")
	at := func(field string) hcl.Range {
		if found := n.get(field); found != nil {
			return found.at
		}
		return n.at
	}
	hmac := strings.HasPrefix(auth.Algorithm, "HS")
	switch {
	case !auth.Enabled:
		c.warn(CodeAuthOff, at("enabled"), "The admin API is open", "With auth.enabled = false anyone who can reach %s:%d can stop, seek and replay.",
			c.config.Admin.Host, c.config.Admin.Port)
	case hmac && auth.Secret == "":
		c.fail(CodeKeyMissing, at("secret"), "No key for the admin API",
			"admin.auth.secret is mandatory with %s: at least %d characters. In the shipped configuration it is ADMIN_AUTH_SECRET.", auth.Algorithm, shortestSecret)
	case hmac && len([]rune(auth.Secret)) < shortestSecret:
		c.fail(CodeSecretTooShort, at("secret"), "Secret too short",
			"admin.auth.secret has %d characters, and %s needs at least %d.", len([]rune(auth.Secret)), auth.Algorithm, shortestSecret)
	case !hmac && auth.PublicKey == "":
		c.fail(CodeKeyMissing, at("public_key"), "No key for the admin API",
			"admin.auth.public_key is mandatory with %s. In the shipped configuration it is ADMIN_AUTH_PUBLIC_KEY.", auth.Algorithm)
	}
}
