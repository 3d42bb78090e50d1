package runbook

import (
	"fmt"
	"strings"
)

// shell turns lines of a script into lines for a person's shell.
func shell(lines []string) (string, error) {
	words := map[string]Word{}
	for _, w := range Vocabulary() {
		words[w.Name] = w
	}
	var out []string
	input := "" // of the next command
	for _, line := range lines {
		line, failing := strings.CutPrefix(line, "! ")
		name, raw, _ := strings.Cut(line, " ")
		args, err := split(raw)
		if err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
		if name == "stdin" {
			input = args[0]
			continue
		}
		if w, ok := words[name]; ok {
			out, input = add(out, w, w.shell(raw, args), input, failing), ""
			continue
		}
		if out, err = builtin(out, name, args, failing); err != nil {
			return "", err
		}
	}
	if len(out) == 0 {
		return "", nil
	}
	return strings.Join(out, "\n") + "\n", nil
}

// add appends a command; one that reads what the last one printed follows it in a pipe, and an exit code is said behind it.
func add(out []string, w Word, command, input string, failing bool) []string {
	switch last := len(out) - 1; {
	case command == silence:
	case w.Name == "status" && last >= 0:
		out[last] = strings.TrimSuffix(out[last], "   # fails") + "   " + command
	case input == "stdout" && last >= 0:
		out[last] += " | " + command
	case input != "":
		out = append(out, command+" <"+input)
	default:
		out = append(out, command)
	}
	if failing && len(out) > 0 && command != silence {
		out[len(out)-1] += "   # fails"
	}
	return out
}

// builtin renders testscript's own words. What scripts don't use is refused, so that no line is left out in silence.
func builtin(out []string, name string, args []string, failing bool) ([]string, error) {
	last := len(out) - 1
	not := ""
	if failing {
		not = "not "
	}
	pattern := func() string { return strings.NewReplacer("\\", "").Replace(args[len(args)-1]) }
	switch name {
	case "stdout":
		return append(out, "# prints "+not+pattern()), nil
	case "stderr":
		return append(out, "# says "+not+pattern()), nil
	case "cmp":
		return append(out, "# "+args[0]+" is as in "+args[1]), nil
	case "cp":
		if args[0] == "stdout" && last >= 0 {
			out[last] += " >" + args[1]
			return out, nil
		}
		return append(out, "cp "+strings.Join(args, " ")), nil
	case "grep":
		verb := "grep -E "
		if failing {
			verb = "! grep -E "
		}
		return append(out, verb+quote(args[0])+" "+strings.Join(args[1:], " ")), nil
	case "exists":
		return append(out, strings.TrimSpace("test "+map[bool]string{true: "! "}[failing]+"-e "+strings.Join(args, " "))), nil
	case "env":
		return append(out, "export "+strings.Join(args, " ")), nil
	case "rm", "mkdir", "mv":
		return append(out, name+" "+strings.Join(args, " ")), nil
	default:
		return nil, fmt.Errorf("no word for %q", name)
	}
}

// split takes a line's words apart as testscript does: quotes are single, and two of them within are one.
func split(raw string) ([]string, error) {
	var words []string
	word, in, quoted := strings.Builder{}, false, false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case quoted && c == '\'' && i+1 < len(raw) && raw[i+1] == '\'':
			word.WriteByte(c)
			i++
		case c == '\'':
			quoted, in = !quoted, true
		case !quoted && (c == ' ' || c == '\t'):
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("a quote is open in %q", raw)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
