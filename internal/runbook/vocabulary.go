package runbook

import (
	"fmt"
	"slices"
	"strings"
)

// Word is a command that scripts have beside testscript's own.
type Word struct {
	Name string
	Uses []Use
	// shell is what a person types instead: raw is the line behind the word as it stands, args its words. "" is nothing.
	shell func(raw string, args []string) string
}

// Use is one way to use a word.
type Use struct{ Usage, Does string }

const (
	groups  = `kafka-consumer-groups --bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS" --group "$KAFKA_GROUP_ID"`
	topics  = `kafka-topics --bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS"`
	psql    = `psql "$DATABASE_URL" -Atc `
	silence = ""
)

// Vocabulary returns the words, in the order in which a script needs them.
func Vocabulary() []Word {
	return slices.Concat(processes(), observations(), records(), outages())
}

func processes() []Word {
	return []Word{
		{
			"services",
			[]Use{{
				"services [-own-kafka] [-own-database] [-partitions N] [-no-topics]",
				"Sets the variables of the shipped configuration: the tests' Kafka and PostgreSQL or servers of the script's own, a fresh database, fresh topics (3 partitions, 1 for dead letters; -no-topics leaves them to be made), groups, a free port, a secret, short probes, and the times NOW, a minute ago, and LATER, after it.",
			}},
			func(string, []string) string { return silence },
		},
		{
			"appliance",
			[]Use{{
				"appliance ARGS [& or &NAME&]",
				"Runs the binary. With & it runs on, called appliance or NAME, its log in the file appliance.log or NAME.log; it is ended with the script.",
			}},
			func(raw string, _ []string) string { return "appliance " + background(raw) },
		},
		{
			"status",
			[]Use{{"status CODE", "The last appliance in the foreground ended with this exit code."}},
			func(_ string, args []string) string { return "# exit code " + strings.Join(args, " ") },
		},
		{
			"terminate",
			[]Use{{"terminate [NAME]", "Sends SIGTERM to an appliance in the background."}},
			func(_ string, args []string) string { return "kill -TERM " + job(args) },
		},
		{
			"crash",
			[]Use{{"crash [NAME]", "Sends SIGKILL to it and waits for its end."}},
			func(_ string, args []string) string { return "kill -KILL " + job(args) },
		},
	}
}

// background turns `run &second&` into what a shell takes, with the log where scripts have it.
func background(raw string) string {
	i := strings.LastIndex(raw, " &")
	if i < 0 || strings.ContainsAny(raw[i+2:], " '") {
		return raw
	}
	name := strings.Trim(raw[i+1:], "&")
	if name == "" {
		return raw[:i] + " >appliance.log 2>&1 &"
	}
	return fmt.Sprintf("%s >%s.log 2>&1 & %s=$!", raw[:i], name, name)
}

func job(args []string) string {
	if len(args) == 0 {
		return "%appliance"
	}
	return "$" + args[0]
}

func records() []Word {
	return []Word{
		{
			"send",
			[]Use{{
				"send [-t TOPIC] [-p PARTITION] [-k KEY] [-H NAME=VALUE]… [-hex NAME=HEX]… [-n COUNT] [-abort] (VALUE or -Z or -file FILE or -x HEX or -pad BYTES)",
				"Produces a record as it is, COUNT times, by default to partition 0 of the topic of events, without a key. -hex is a header of any bytes, -Z a null value, -x a value of any bytes, -pad that many random bytes, -abort a transaction that is given up.",
			}},
			func(raw string, _ []string) string {
				return `kcat -P -b "$KAFKA_BOOTSTRAP_SERVERS" ` + destination(raw)
			},
		},
		{
			"envsubst",
			[]Use{{"envsubst FILE…", "Puts the environment's values where the files name $VARIABLES."}},
			func(_ string, args []string) string {
				var all []string
				for _, file := range args {
					all = append(all, fmt.Sprintf("envsubst <%s >%s.new && mv %s.new %s", file, file, file, file))
				}
				return strings.Join(all, "\n")
			},
		},
		{
			"reset-offsets",
			[]Use{{"reset-offsets OFFSET", "Commits OFFSET for the group in every partition, as an operator's tool does; `end` is the end of each log. Waits until the group is empty."}},
			func(_ string, args []string) string {
				return groups + ` --topic "$KAFKA_TOPIC" --reset-offsets --to-offset ` + strings.Join(args, " ") + " --execute"
			},
		},
		{
			"delete-offsets",
			[]Use{{"delete-offsets", "Deletes the group at the broker, with all its offsets. Waits until it is empty."}},
			func(string, []string) string { return groups + " --delete" },
		},
		{
			"recreate-topic",
			[]Use{{"recreate-topic", "Deletes the topic of events and makes it again, with as many partitions."}},
			func(string, []string) string {
				return topics + ` --delete --topic "$KAFKA_TOPIC"` + "\n" + topics + ` --create --topic "$KAFKA_TOPIC"`
			},
		},
		{
			"prune",
			[]Use{{"prune OFFSET", "Deletes what lies before OFFSET in every partition, as retention does."}},
			func(_ string, args []string) string {
				return `kafka-delete-records --bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS" --offset-json-file before-` + strings.Join(args, "") + ".json"
			},
		},
	}
}

func outages() []Word {
	return []Word{
		{
			"broker",
			[]Use{{"broker kill or start", "Kills the script's own broker, or starts it again with its data."}},
			func(_ string, args []string) string {
				if strings.Join(args, "") == "kill" {
					return "systemctl kill -s KILL kafka"
				}
				return "systemctl start kafka"
			},
		},
		{
			"database",
			[]Use{{"database stop, crash or start", "Ends the script's own database server in order or as a power cut does, or starts it again."}},
			func(_ string, args []string) string {
				verb := map[string]string{"stop": "stop", "start": "start", "crash": "kill -s KILL"}[strings.Join(args, "")]
				return "systemctl " + verb + " postgresql"
			},
		},
	}
}

// destination names the topic where the line doesn't.
func destination(raw string) string {
	if strings.Contains(raw, "-t ") {
		return raw
	}
	return `-t "$KAFKA_TOPIC" ` + raw
}
