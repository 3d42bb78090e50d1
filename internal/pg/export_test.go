package pg

import "context"

// BackendPID names the server process behind a connection of the pool.
func BackendPID(ctx context.Context, d *DB) (pid int, err error) {
	err = d.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, err
}

// Statements returns how many rows each statement of a write takes.
func Statements(rows []Row) (sizes []int) {
	for rest := inOrder(rows); len(rest) > 0; rest = rest[chunk(rest):] {
		sizes = append(sizes, chunk(rest))
	}
	return sizes
}
