package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

// sql: sql QUERY|-f FILE, printed as psql -At does.
func (s *scene) sql(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 2 && args[0] == "-f" {
		args = []string{ts.ReadFile(args[1])}
	}
	answer, err := query(ts.Getenv("DATABASE_URL"), one(ts, args))
	fmt.Fprint(ts.Stdout(), answer)
	if err != nil {
		fmt.Fprintln(ts.Stderr(), err)
	}
	if (err != nil) != neg {
		ts.Fatalf("the database said: %v", err)
	}
}

func query(url, statements string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, statements).ReadAll()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, result := range results {
		for _, row := range result.Rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = string(cell)
			}
			out.WriteString(strings.Join(cells, "|") + "\n")
		}
	}
	return out.String(), nil
}

// database: database stop|crash|start.
func (s *scene) database(ts *testscript.TestScript, neg bool, args []string) {
	refuseNeg(ts, neg)
	if s.postgres == nil {
		ts.Fatalf("the database server is not this script's own: services -own-database")
	}
	switch one(ts, args) {
	case "stop":
		s.postgres.Stop(false)
	case "crash":
		s.postgres.Stop(true)
	case "start":
		s.postgres.Start()
	default:
		ts.Fatalf("database stop|crash|start")
	}
}
