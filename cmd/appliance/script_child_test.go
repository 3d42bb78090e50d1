package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// child is an appliance in the background. Its stderr is the file NAME.log of the script.
type child struct {
	name  string
	log   string // path
	ready string // path of its ready file, "" for none
	cmd   *exec.Cmd
	told  bool          // to end
	ended chan struct{} // closed when it has
}

// appliance: appliance ARGS... [&|&NAME&].
func (s *scene) appliance(ts *testscript.TestScript, neg bool, args []string) {
	if n := len(args); n > 0 && regexp.MustCompile(`^&(\w+&)?$`).MatchString(args[n-1]) {
		refuseNeg(ts, neg)
		name := strings.Trim(args[n-1], "&")
		if name == "" {
			name = "appliance"
		}
		s.start(ts, name, args[:n-1])
		return
	}
	err := ts.Exec(s.binary, args...)
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("start appliance: %v", err)
	}
	s.code = 0
	if exit != nil {
		s.code = exit.ExitCode()
	}
	if (s.code != 0) != neg {
		ts.Fatalf("it ended with code %d", s.code)
	}
}

func (s *scene) start(ts *testscript.TestScript, name string, args []string) {
	if old := s.children[name]; old != nil && !old.over() {
		ts.Fatalf("%s is still running", name)
	}
	c := &child{name: name, log: ts.MkAbs(name + ".log"), ended: make(chan struct{})}
	for i, arg := range args {
		if arg == "--ready-file" && i+1 < len(args) {
			c.ready = ts.MkAbs(args[i+1])
			ts.Check(removed(c.ready))
		}
	}
	log, err := os.Create(c.log)
	ts.Check(err)
	defer log.Close()
	c.cmd = exec.Command(s.binary, args...)
	c.cmd.Dir, c.cmd.Env = ts.MkAbs("."), environ(ts)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	c.cmd.SysProcAttr = dieWithUs()
	ts.Check(c.cmd.Start())
	go func() { _ = c.cmd.Wait(); close(c.ended) }()
	s.children[name] = c
}

// environ is the script's environment, which testscript shows to nobody but its own processes.
func environ(ts *testscript.TestScript) []string {
	ts.Check(ts.Exec("env"))
	return strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
}

func removed(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (c *child) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// kill ends the process, if it runs, and waits for its end.
func (c *child) kill() {
	c.told = true
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// url is where its admin listener is, "" before it is open.
func (c *child) url() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		var entry struct{ Msg, URL string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "admin listener is open" {
			return entry.URL
		}
	}
	return ""
}

// find returns the child of that name, the only one if it is "".
func (s *scene) find(ts *testscript.TestScript, name string) *child {
	if name == "" {
		name = "appliance"
	}
	c := s.children[name]
	if c == nil {
		ts.Fatalf("no %s was started", name)
	}
	return c
}

// terminate: terminate [NAME].
func (s *scene) terminate(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	c := s.find(ts, strings.Join(args, ""))
	c.told = true
	ts.Check(c.cmd.Process.Signal(syscall.SIGTERM))
}

// crash: crash [NAME].
func (s *scene) crash(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	s.find(ts, strings.Join(args, "")).kill()
}

// status: status CODE.
func (s *scene) status(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	if len(args) != 1 || int64(s.code) != number(ts, args[0]) {
		ts.Fatalf("it ended with code %d", s.code)
	}
}
