package embedded

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"appliance/internal/embedded/postmaster"
)

// placePostgres returns the folder for PostgreSQL's data, made and owned by
// the account. It is DIR/postgres, unless the account cannot get there: as root
// in a folder below /root, say. Then it is a folder below /var/lib named after
// DIR, and out says so. The choice of the first start is remembered.
func placePostgres(ctx context.Context, f *folder, account postmaster.Account, out *lines) (string, error) {
	n := f.remembered()
	if n.PostgresHome != "" {
		return elsewhere(ctx, f, account, n, out)
	}
	home := f.path("postgres")
	if err := account.MkdirAll(home); err != nil {
		return "", fmt.Errorf("place postgresql: %w", err)
	}
	if account.Reaches(ctx, home) {
		return home, nil
	}
	if major, err := postmaster.Major(filepath.Join(home, "data")); err != nil || major != 0 {
		return "", errors.Join(err, fmt.Errorf("place postgresql: %s holds data, but user %s cannot enter it any more", home, account.Name))
	}
	if err := os.Remove(home); err != nil {
		return "", fmt.Errorf("place postgresql: %w", err)
	}
	sum := sha256.Sum256([]byte(f.dir))
	n.PostgresHome = filepath.Join("/var/lib/appliance", "postgres-"+hex.EncodeToString(sum[:8]))
	n.ID = rand.Text()
	return elsewhere(ctx, f, account, n, out)
}

// elsewhere uses a folder outside DIR. A file in it names the DIR it belongs
// to by an id that only that DIR knows: what is left of a DIR of the same path
// that was removed since has another id, its password is gone, and it goes too.
func elsewhere(ctx context.Context, f *folder, account postmaster.Account, n notes, out *lines) (string, error) {
	owner := filepath.Join(n.PostgresHome, "owner")
	text, err := os.ReadFile(owner)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("place postgresql: %w", err)
	}
	if err == nil && strings.TrimSpace(string(text)) != n.ID {
		out.printf("PostgreSQL: removing %s, left by an earlier %s", n.PostgresHome, f.dir)
		if err := endOrphan(ctx, filepath.Join(n.PostgresHome, "data")); err != nil {
			return "", fmt.Errorf("place postgresql: %w", err)
		}
		if err := os.RemoveAll(n.PostgresHome); err != nil {
			return "", fmt.Errorf("place postgresql: %w", err)
		}
	}
	if err := account.MkdirAll(n.PostgresHome); err != nil {
		return "", fmt.Errorf("place postgresql: %w", err)
	}
	if err := writeFile(owner, []byte(n.ID+"\n")); err != nil {
		return "", fmt.Errorf("place postgresql: %w", err)
	}
	if err := f.remember(func(kept *notes) { kept.PostgresHome, kept.ID = n.PostgresHome, n.ID }); err != nil {
		return "", err
	}
	if !account.Reaches(ctx, n.PostgresHome) {
		return "", fmt.Errorf("place postgresql: user %s can enter neither %s nor %s: choose a data folder it can", account.Name, f.path("postgres"), n.PostgresHome)
	}
	out.printf("PostgreSQL: user %s cannot enter %s; its data are in %s", account.Name, f.dir, n.PostgresHome)
	return n.PostgresHome, nil
}
