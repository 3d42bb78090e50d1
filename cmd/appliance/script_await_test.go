package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
)

// patience bounds every await: an outage with its backoff takes half of it on two busy cores.
const patience = 90 * time.Second

// await: await [-of NAME] WHAT ARGS... It looks until it sees what it waits for, and fails with the ends of the logs when
// it doesn't in time, or when a process ended that nobody told to.
func (s *scene) await(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	of := ""
	if len(args) > 2 && args[0] == "-of" {
		of, args = args[1], args[2:]
	}
	looks := map[string]func(*testscript.TestScript, string, []string) (string, bool){
		"ready": s.lookReady, "exit": s.lookExit, "log": s.lookLog, "http": s.lookHTTP, "metric": s.lookMetric,
		"rows": s.lookRows, "indexed": s.lookIndexed, "dead-letters": s.lookLetters, "lag": s.lookLag, "sql": s.lookSQL,
	}
	if len(args) == 0 || looks[args[0]] == nil {
		ts.Fatalf("await what? %q", args)
	}
	look, deadline := looks[args[0]], time.Now().Add(patience)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for ; ; <-poll.C {
		seen, ok := look(ts, of, args[1:])
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not within %s; last seen: %s", patience, seen)
		}
		for _, c := range s.children {
			if !c.told && c.over() && args[0] != "exit" {
				ts.Fatalf("%s ended by itself: %s; last seen: %s", c.name, c.cmd.ProcessState, seen)
			}
		}
	}
}

func (s *scene) lookReady(ts *testscript.TestScript, of string, _ []string) (string, bool) {
	c := s.find(ts, of)
	text, err := os.ReadFile(c.ready)
	return fmt.Sprint(err), err == nil && json.Valid(text)
}

func (s *scene) lookExit(ts *testscript.TestScript, of string, args []string) (string, bool) {
	c := s.find(ts, of)
	if !c.over() {
		return "it runs", false
	}
	c.told = true
	if code := c.cmd.ProcessState.ExitCode(); int64(code) != number(ts, one(ts, args)) {
		ts.Fatalf("%s ended with code %d", c.name, code)
	}
	return "", true
}

func (s *scene) lookLog(ts *testscript.TestScript, of string, args []string) (string, bool) {
	text, err := os.ReadFile(s.find(ts, of).log)
	ts.Check(err)
	for line := range strings.Lines(string(text)) {
		if containsAll(line, args) {
			return "", true
		}
	}
	return "no such line", false
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// lookHTTP: http PATH CODE [TEXT...].
func (s *scene) lookHTTP(ts *testscript.TestScript, of string, args []string) (string, bool) {
	if len(args) < 2 {
		ts.Fatalf("await http PATH CODE [TEXT...]")
	}
	code, body, err := s.request(s.find(ts, of).url()+args[0], "")
	if err != nil {
		return err.Error(), false
	}
	return fmt.Sprint(code, " ", body), strconv.Itoa(code) == args[1] && containsAll(body, args[2:])
}

func (s *scene) request(url, bearer string) (int, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// get: get [-of NAME] [-token FILE] PATH.
func (s *scene) get(ts *testscript.TestScript, neg bool, args []string) {
	of, bearer := "", ""
	for len(args) > 1 {
		switch args[0] {
		case "-of":
			of = args[1]
		case "-token":
			bearer = strings.TrimSpace(ts.ReadFile(args[1]))
		default:
			ts.Fatalf("unknown argument %q", args[0])
		}
		args = args[2:]
	}
	code, body, err := s.request(s.find(ts, of).url()+one(ts, args), bearer)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n%d\n", strings.TrimSpace(body), code)
	if (code >= 400) != neg {
		ts.Fatalf("answered with %d", code)
	}
}

// lookMetric: metric NAME[{label="value",...}] [>=]NUMBER. Series that fit are added up; without
// any, a counter that never counted is 0.
func (s *scene) lookMetric(ts *testscript.TestScript, of string, args []string) (string, bool) {
	if len(args) != 2 {
		ts.Fatalf("await metric NAME NUMBER")
	}
	_, body, err := s.request(s.find(ts, of).url()+"/metrics", "")
	if err != nil {
		return err.Error(), false
	}
	name, labels, _ := strings.Cut(strings.TrimSuffix(args[0], "}"), "{")
	sum, found := 0.0, false
	for line := range strings.Lines(body) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		own, its, _ := strings.Cut(series, "{")
		if own == name && containsAll(its, strings.FieldsFunc(labels, func(r rune) bool { return r == ',' })) {
			n, err := strconv.ParseFloat(value, 64)
			ts.Check(err)
			sum, found = sum+n, true
		}
	}
	text, atLeast := strings.CutPrefix(args[1], ">=")
	want, err := strconv.ParseFloat(text, 64)
	ts.Check(err)
	return fmt.Sprint(sum, " found: ", found), (found || want == 0) && (sum == want || atLeast && sum > want)
}

func (s *scene) lookRows(ts *testscript.TestScript, _ string, args []string) (string, bool) {
	return s.lookSQL(ts, "", []string{"select count(*) from events.cloud_event", one(ts, args)})
}

func (s *scene) lookIndexed(ts *testscript.TestScript, _ string, args []string) (string, bool) {
	return s.lookSQL(ts, "", []string{"select count(*) from events.dead_letter", one(ts, args)})
}

// lookSQL: sql QUERY ANSWER.
func (s *scene) lookSQL(ts *testscript.TestScript, _ string, args []string) (string, bool) {
	if len(args) != 2 {
		ts.Fatalf("await sql QUERY ANSWER")
	}
	answer, err := query(ts.Getenv("DATABASE_URL"), args[0])
	if err != nil {
		return err.Error(), false
	}
	return answer, strings.TrimSpace(answer) == args[1]
}

// lookLetters counts the messages on the dead-letter topic.
func (s *scene) lookLetters(ts *testscript.TestScript, _ string, args []string) (string, bool) {
	total := int64(0)
	err := s.admin(func(ctx context.Context, admin *kadm.Client) error {
		starts, err := admin.ListStartOffsets(ctx, ts.Getenv("KAFKA_DLQ_TOPIC"))
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, ts.Getenv("KAFKA_DLQ_TOPIC"))
		starts.Each(func(o kadm.ListedOffset) { total -= o.Offset })
		ends.Each(func(o kadm.ListedOffset) { total += o.Offset })
		return err
	})
	return fmt.Sprint(total, " ", err), err == nil && total == number(ts, one(ts, args))
}

// lookLag adds up how far the group's commits are behind the ends of the topic.
func (s *scene) lookLag(ts *testscript.TestScript, _ string, args []string) (string, bool) {
	total := int64(0)
	err := s.admin(func(ctx context.Context, admin *kadm.Client) error {
		committed, err := admin.FetchOffsets(ctx, ts.Getenv("KAFKA_GROUP_ID"))
		if err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, ts.Getenv("KAFKA_TOPIC"))
		ends.Each(func(o kadm.ListedOffset) {
			total += o.Offset
			if at, ok := committed.Lookup(o.Topic, o.Partition); ok {
				total -= at.At
			}
		})
		return err
	})
	return fmt.Sprint(total, " ", err), err == nil && total == number(ts, one(ts, args))
}

func one(ts *testscript.TestScript, args []string) string {
	if len(args) != 1 {
		ts.Fatalf("one argument is wanted, not %q", args)
	}
	return args[0]
}
