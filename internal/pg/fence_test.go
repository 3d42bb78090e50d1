package pg_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"appliance/internal/pg"
)

func TestPG20ACheckpointNeverGoesBack(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	for _, next := range []int64{100, 50, 100} {
		if _, err := db.Write(t.Context(), group, nil, []pg.Position{position(epoch, next)}); err != nil {
			t.Fatalf("next %d: %v", next, err)
		}
		expectStored(t, db, 0, 100)
	}
	_, err := db.Write(t.Context(), group, events(0, 3), []pg.Position{position(epoch-1, 200)})
	if !errors.Is(err, pg.ErrFenced) {
		t.Fatalf("a wrong epoch gave %v", err)
	}
	expectStored(t, db, 0, 100)
}

func TestPG19APartitionNamedTwiceIsCollapsedToItsHighestOffset(t *testing.T) {
	db, _ := migrated(t)
	epoch := claim(t, db, "a").Epoch
	positions := []pg.Position{position(epoch, 6), position(epoch, 7), position(epoch, 5)}
	if _, err := db.Write(t.Context(), group, events(5, 7), positions); err != nil {
		t.Fatal(err)
	}
	expectStored(t, db, 2, 7)
}

func TestAWriterWhoseClaimWasTakenIsFencedAsAWhole(t *testing.T) {
	db, _ := migrated(t)
	late := claim(t, db, "late")
	if late.Found || late.Epoch != 1 {
		t.Fatalf("first claim %+v", late)
	}
	if _, err := db.Write(t.Context(), group, events(0, 2), []pg.Position{position(late.Epoch, 2)}); err != nil {
		t.Fatal(err)
	}
	rightful := claim(t, db, "rightful")
	if !rightful.Found || rightful.Next != 2 || rightful.Epoch != 2 {
		t.Fatalf("second claim %+v", rightful)
	}
	other := position(late.Epoch, 9)
	other.Partition = 1
	if _, err := db.Claim(t.Context(), group, "topic", topicID, 1, "late"); err != nil {
		t.Fatal(err)
	}
	_, err := db.Write(t.Context(), group, events(2, 4), []pg.Position{other, position(late.Epoch, 4)})
	if !errors.Is(err, pg.ErrFenced) {
		t.Fatalf("the late writer got %v", err)
	}
	points, err := db.Checkpoints(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	if points[0].Next != 2 || points[0].Owner != "rightful" || points[1].Found {
		t.Errorf("a fenced batch moved a checkpoint: %+v", points)
	}
	if n, _ := db.Counts(t.Context()); n.Events != 2 {
		t.Errorf("%d rows, want 2", n.Events)
	}
	if _, err := db.Write(t.Context(), group, events(2, 4), []pg.Position{position(rightful.Epoch, 4)}); err != nil {
		t.Errorf("the rightful owner got %v", err)
	}
}

func TestAClaimBehindAnOpenTransactionCanBeCancelled(t *testing.T) {
	db, url := migrated(t)
	claim(t, db, "zombie")
	zombie := connect(t, url)
	tx, err := zombie.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE events.consumer_checkpoint SET next_offset = 3"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	go func() {
		_, err := db.Claim(ctx, group, "topic", topicID, 0, "rightful")
		refused <- err
	}()
	watcher := connect(t, url)
	awaitWaiters(t, watcher, 1)
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled claim got %v", err)
	}
	awaitWaiters(t, watcher, 0)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, db, "rightful"); c.Epoch != 2 {
		t.Errorf("the cancelled claim took effect: epoch %d, want 2", c.Epoch)
	}
}

// awaitWaiters returns when n sessions of this database wait for a lock.
func awaitWaiters(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for waiting := -1; waiting != n; {
		err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatalf("await %d waiting: %v", n, err)
		}
	}
}

func TestTwoWritersOfManyPartitionsTakeTheCheckpointsInOneOrder(t *testing.T) {
	db, _ := migrated(t)
	var forward, backward []pg.Position
	for p := range int32(12) {
		c, err := db.Claim(t.Context(), group, "topic", topicID, p, "a")
		if err != nil {
			t.Fatal(err)
		}
		forward = append(forward, pg.Position{Topic: "topic", TopicID: topicID, Partition: p, Epoch: c.Epoch, Next: 1})
		backward = append([]pg.Position{forward[p]}, backward...)
	}
	var both sync.WaitGroup
	failures := make(chan error, 200)
	for range 100 {
		for _, positions := range [][]pg.Position{forward, backward} {
			both.Go(func() {
				_, err := db.Write(t.Context(), group, nil, positions)
				failures <- err
			})
		}
	}
	both.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWriteThatIsCancelledSaysSo(t *testing.T) {
	db, url := migrated(t)
	epoch := claim(t, db, "a").Epoch
	locker := connect(t, url)
	tx, err := locker.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "LOCK TABLE events.consumer_checkpoint"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := db.Write(ctx, group, events(0, 1), []pg.Position{position(epoch, 1)})
		result <- err
	}()
	awaitWaiters(t, connect(t, url), 1)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
