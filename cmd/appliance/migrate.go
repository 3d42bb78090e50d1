package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"appliance/internal/pg"
)

// migratedDatabase is what `migrate` did to one database.
type migratedDatabase struct {
	Database   string `json:"database"`
	From       int64  `json:"from"` // version of the schema; 0 for none
	To         int64  `json:"to"`
	Partitions int    `json:"partitions"` // months that were made
}

func newMigrateCmd(e *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "migrate [DIR]", Short: "Bring the databases to this build's schema",
		Long: "Migrates each `postgres` of the configuration over its direct_url, and makes the monthly partitions that are\n" +
			"missing. It is safe beside running replicas, which do the same at their start, and when there is nothing to do.\n\n" +
			"It makes no database: where the server has none of that name, it ends with exit code 3, as it does where there\n" +
			"is no server. A login or a migration that the server refuses is exit code 1.",
		Args: optionalDirectory,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadServices(e, first(args))
			if err != nil {
				return err
			}
			done, err := migrateAll(cmd.Context(), e, s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(e.stdout, done)
			}
			for _, d := range done {
				if _, err := fmt.Fprintln(e.stdout, d.words()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func migrateAll(ctx context.Context, e *environment, s *services) ([]migratedDatabase, error) {
	done := []migratedDatabase{}
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Postgres)) {
		d, err := s.migrate(ctx, e, name)
		if err != nil {
			return nil, err
		}
		done = append(done, d)
	}
	return done, nil
}

// migrate asks for an answer first, so that an absent server is told apart from a failed migration.
func (s *services) migrate(ctx context.Context, e *environment, name string) (migratedDatabase, error) {
	conf, err := s.database(name)
	if err != nil {
		return migratedDatabase{}, refused(err)
	}
	db, err := openDatabase(ctx, name, conf)
	if err != nil {
		return migratedDatabase{}, err
	}
	defer db.Close()
	moved, err := pg.Migrate(ctx, conf)
	if err != nil {
		return migratedDatabase{}, databaseError(name, err)
	}
	keep := s.cfg.Postgres[name].Partitions
	made, err := db.EnsureMonths(ctx, e.now(), keep.Keep, keep.Ahead)
	if err != nil {
		return migratedDatabase{}, databaseError(name, err)
	}
	return migratedDatabase{Database: name, From: moved.From, To: moved.To, Partitions: made}, nil
}

func (d migratedDatabase) words() string {
	if d.From == d.To {
		return fmt.Sprintf("%s: schema is at version %d, nothing to migrate; %d partitions made", d.Database, d.To, d.Partitions)
	}
	return fmt.Sprintf("%s: schema migrated from version %d to %d; %d partitions made", d.Database, d.From, d.To, d.Partitions)
}
