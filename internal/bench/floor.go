package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"appliance/internal/event"
	"appliance/internal/generate"
	"appliance/internal/pg"
)

// copyRows is how many rows one COPY, and so one transaction, puts in: as many as the program's largest batch.
const copyRows = 5000

// encodeRows makes the rows of all events as COPY takes them. They are made before any clock runs.
func encodeRows(g *generate.Generator, events, partitions int) ([][]byte, error) {
	var chunks [][]byte
	rows := make([]pg.Row, 0, copyRows)
	for n := range events {
		raw := g.Line(n).Raw
		e, fault := event.DecodeJSON(raw)
		if fault != nil {
			return nil, fmt.Errorf("make rows: %w", fault)
		}
		rows = append(rows, pg.Row{
			OccurredAt: e.OccurredAt, Raw: e.Raw, SHA256: sha256.Sum256(raw), TopicID: [16]byte{1},
			Partition: int32(n % partitions), Offset: int64(n / partitions),
		})
		if len(rows) == copyRows || n == events-1 {
			chunks = append(chunks, pg.EncodeCopy(rows))
			rows = rows[:0]
		}
	}
	return chunks, nil
}

// floor copies all rows into the empty table, over 1, 2 and 4 connections.
func (b *bench) floor(ctx context.Context) ([]FloorRun, error) {
	var runs []FloorRun
	for _, connections := range []int{1, 2, 4} {
		if err := b.db.Empty(ctx); err != nil {
			return nil, err
		}
		took, err := b.copyAll(ctx, connections)
		if err != nil {
			return nil, fmt.Errorf("floor of %d connections: %w", connections, err)
		}
		runs = append(runs, FloorRun{connections, took.Seconds(), perSecond(b.opts.Events, took.Seconds())})
	}
	return runs, nil
}

func (b *bench) copyAll(ctx context.Context, connections int) (time.Duration, error) {
	work := make(chan []byte, len(b.rows))
	for _, chunk := range b.rows {
		work <- chunk
	}
	close(work)
	errs := make([]error, connections)
	stage := fmt.Sprintf("floor, %d connections", connections)
	progress := b.counter(stage)
	began := b.opts.Now()
	var copiers sync.WaitGroup
	for i := range connections {
		copiers.Go(func() {
			for chunk := range work {
				n, err := b.db.Copy(ctx, chunk)
				if err != nil {
					errs[i] = err
					return
				}
				progress(n)
			}
		})
	}
	copiers.Wait()
	return b.opts.Now().Sub(began), errors.Join(errs...)
}

// counter returns a function that adds to what is done of a stage, from any goroutine.
func (b *bench) counter(stage string) func(n int64) {
	var mu sync.Mutex
	done := int64(0)
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		done += n
		b.opts.Progress(stage, done, int64(b.opts.Events))
	}
}
