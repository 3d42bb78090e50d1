// Package migrations carries the SQL that the stores of this build need, so that one binary brings its own schema.
package migrations

import "embed"

// Postgres holds postgres/*.sql, one goose migration a file, in the syntax of PostgreSQL 15 to 18.
//
//go:embed postgres/*.sql
var Postgres embed.FS
