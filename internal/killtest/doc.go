// Package killtest holds the tests of the promise: they end the appliance, the broker or the database at a random moment,
// again and again, and then count by id. It has no code of its own.
//
// `make test` runs a small load; `make test-kill` runs the whole one, with -args -full.
package killtest
