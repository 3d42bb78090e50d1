package pg

import "context"

// BackendPID names the server process behind a connection of the pool.
func BackendPID(ctx context.Context, d *DB) (pid int, err error) {
	err = d.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}
