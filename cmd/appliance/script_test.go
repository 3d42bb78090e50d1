package main

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"appliance/internal/runbook"
)

const scripts = "../../testdata/script"

// Each script of testdata/script is a scenario on the real binary, a real Kafka and a real PostgreSQL. UPDATE_SCRIPTS=1
// rewrites the files that they compare with. The word appliance is ours and not testscript.Main's, whose processes in the
// background keep their log to themselves until they end, and cannot be sent a SIGTERM.
func TestScripts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	testscript.Run(t, testscript.Params{
		Dir: scripts, UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", Cmds: commands(),
		Setup: func(env *testscript.Env) error {
			s := &scene{t: env.T().(testing.TB), binary: self, children: map[string]*child{}}
			env.Values[sceneKey{}] = s
			env.Setenv(runProgram, "1")         // this test binary is the program then
			env.Setenv("XDG_CACHE_HOME", cache) // where fetched PostgreSQL binaries are kept
			env.Setenv("HOSTNAME", "replica")
			env.Defer(s.end)
			return nil
		},
	})
}

// The words that scripts use are those that the runbooks are rendered with.
func TestTheVocabularyOfScriptsIsTheRunbooks(t *testing.T) {
	var documented []string
	for _, c := range runbook.Vocabulary() {
		documented = append(documented, c.Name)
	}
	slices.Sort(documented)
	if own := slices.Sorted(maps.Keys(commands())); !slices.Equal(own, documented) {
		t.Errorf("scripts know %q, runbooks %q", own, documented)
	}
}

// commands are the words of scripts beside testscript's own. internal/runbook says what each does.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*scene, *testscript.TestScript, bool, []string){
		"appliance": (*scene).appliance, "terminate": (*scene).terminate, "crash": (*scene).crash, "status": (*scene).status,
		"services": (*scene).services, "broker": (*scene).broker, "database": (*scene).database,
		"await": (*scene).await, "get": (*scene).get, "sql": (*scene).sql, "envsubst": (*scene).envsubst,
		"send": (*scene).send, "reset-offsets": (*scene).resetOffsets, "delete-offsets": (*scene).deleteOffsets,
		"recreate-topic": (*scene).recreateTopic, "prune": (*scene).prune,
	}
	bound := make(map[string]func(*testscript.TestScript, bool, []string), len(all))
	for name, do := range all {
		bound[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			do(ts.Value(sceneKey{}).(*scene), ts, neg, args)
		}
	}
	return bound
}
