package pg

import (
	"context"
	"fmt"
	"time"
)

// Month is the half-open span of one partition, in UTC.
type Month struct{ From, Until time.Time }

// Months returns the months that are kept at the time now: back months before the present one, that one, and ahead after.
func Months(now time.Time, back, ahead int) []Month {
	now = now.UTC()
	months := make([]Month, 0, back+ahead+1)
	for i := -back; i <= ahead; i++ {
		from := time.Date(now.Year(), now.Month()+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		months = append(months, Month{From: from, Until: from.AddDate(0, 1, 0)})
	}
	return months
}

// EnsureMonths makes the partitions of Months that are missing and returns how many it made. Where none is missing it
// costs one query of the catalogue and takes no lock; else callers wait for one another, and writers for nobody.
func (d *DB) EnsureMonths(ctx context.Context, now time.Time, back, ahead int) (int, error) {
	there, err := d.Window(ctx)
	if err != nil {
		return 0, err
	}
	known := make(map[int64]bool, len(there))
	for _, m := range there {
		known[m.From.Unix()] = true
	}
	months := Months(now, back, ahead)
	missing := false
	for _, m := range months {
		missing = missing || !known[m.From.Unix()]
	}
	if !missing {
		return 0, nil
	}
	var made int
	err = d.pool.QueryRow(ctx, "SELECT events.ensure_months($1, $2)", months[0].From, months[len(months)-1].Until).Scan(&made)
	if err != nil {
		return 0, failed(ctx, "make monthly partitions", err)
	}
	return made, nil
}

// The bounds of the partitions as instants. They are printed and read back in the same session, so that its time zone
// cannot matter.
const windowSQL = `
SELECT lo::timestamptz, hi::timestamptz
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
 CROSS JOIN LATERAL (SELECT m[1], m[2] FROM regexp_match(pg_get_expr(c.relpartbound, c.oid),
                     'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') m) b(lo, hi)
 WHERE i.inhparent = to_regclass('events.cloud_event') AND lo IS NOT NULL
 ORDER BY 1`

// Window returns the spans of the partitions that exist, the earliest first.
func (d *DB) Window(ctx context.Context) ([]Month, error) {
	rows, err := d.pool.Query(ctx, windowSQL)
	if err != nil {
		return nil, failed(ctx, "read partitions", err)
	}
	defer rows.Close()
	var months []Month
	for rows.Next() {
		var m Month
		if err := rows.Scan(&m.From, &m.Until); err != nil {
			return nil, fmt.Errorf("read partitions: %w", err)
		}
		months = append(months, Month{From: m.From.UTC(), Until: m.Until.UTC()})
	}
	if err := rows.Err(); err != nil {
		return nil, failed(ctx, "read partitions", err)
	}
	return months, nil
}
