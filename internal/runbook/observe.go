package runbook

import (
	"fmt"
	"slices"
	"strings"
)

func observations() []Word {
	return []Word{
		{"await", []Use{
			{"await [-of NAME] ready", "until it wrote its --ready-file"},
			{"await [-of NAME] exit CODE", "until it ended, with this code"},
			{"await [-of NAME] log TEXT…", "until a line of its log has all of these"},
			{"await [-of NAME] http PATH CODE [TEXT…]", "until its admin listener answers so"},
			{"await [-of NAME] metric NAME[{LABELS}] [>=]NUMBER", "until the series that fit add up to it"},
			{"await rows N", "until the table of events has N rows"},
			{"await indexed N", "until the index of dead letters has N entries"},
			{"await dead-letters N", "until the dead-letter topic has N messages"},
			{"await lag N", "until the group's commits are N behind the ends of the topic"},
			{"await sql QUERY ANSWER", "until the query prints it"},
		}, await},
		{"get", []Use{{"get [-of NAME] [-token FILE] PATH", "Prints body and code of the admin listener's answer; with ! one of 400 and above."}}, get},
		{
			"sql",
			[]Use{{"sql QUERY or sql -f FILE", "Prints what the database answers, with a bar between columns."}},
			func(_ string, args []string) string {
				if len(args) == 2 && args[0] == "-f" {
					return `psql "$DATABASE_URL" -f ` + args[1]
				}
				return psql + quote(strings.Join(args, " "))
			},
		},
	}
}

func get(_ string, args []string) string {
	bearer := ""
	if i := slices.Index(args, "-token"); i >= 0 && i+1 < len(args) {
		bearer = fmt.Sprintf(`-H "Authorization: Bearer $(cat %s)" `, args[i+1])
	}
	return fmt.Sprintf(`curl -s -w '\n%%{http_code}\n' %s"%s%s"`, bearer, base(args), args[len(args)-1])
}

// base is the admin listener of the process that -of names.
func base(args []string) string {
	if i := slices.Index(args, "-of"); i >= 0 && i+1 < len(args) {
		return "$ADMIN_" + strings.ToUpper(args[i+1])
	}
	return "$ADMIN"
}

// await is a command whose answer is looked at until it is the one that is waited for.
func await(_ string, args []string) string {
	of := []string{}
	log, process := "appliance.log", "%appliance"
	if len(args) > 2 && args[0] == "-of" {
		of, log, process, args = args[:2], args[1]+".log", "$"+args[1], args[2:]
	}
	what, rest := args[0], args[1:]
	until := func(command, condition string) string { return command + "   # until " + condition }
	switch what {
	case "ready":
		return "# wait for the ready file"
	case "exit":
		return "wait " + process + "   # exit code " + rest[0]
	case "log":
		return until("grep "+quote(strings.Join(rest, ".*"))+" "+log, "it is there")
	case "http":
		return until(fmt.Sprintf(`curl -s -w '\n%%{http_code}\n' "%s%s"`, base(of), rest[0]), "it answers "+strings.Join(rest[1:], " with "))
	case "metric":
		name, _, _ := strings.Cut(rest[0], "{")
		return until(fmt.Sprintf(`curl -s "%s/metrics" | grep ^%s`, base(of), name), rest[0]+" is "+rest[1])
	case "rows":
		return until(psql+"'select count(*) from events.cloud_event'", rest[0])
	case "indexed":
		return until(psql+"'select count(*) from events.dead_letter'", rest[0])
	case "dead-letters":
		return until(`kafka-get-offsets --bootstrap-server "$KAFKA_BOOTSTRAP_SERVERS" --topic "$KAFKA_DLQ_TOPIC"`, rest[0]+" in all")
	case "lag":
		return until(groups+" --describe", "LAG is "+rest[0]+" in all")
	default:
		return until(psql+quote(rest[0]), rest[1])
	}
}

// quote makes one word for a shell of a text, in the way that reads best.
func quote(text string) string {
	if strings.Contains(text, "'") && !strings.ContainsAny(text, "\"$`\\!") {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
