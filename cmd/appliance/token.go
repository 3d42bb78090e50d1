package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"appliance/internal/embedded"
	"appliance/internal/token"
)

// newTokenCmd mints a token for an operator, from the secret of the environment or of a --dev data folder.
func newTokenCmd(e *environment) *cobra.Command {
	var data, subject string
	var scopes []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "token", Short: "Mint a token for the admin API",
		Long: "Prints a token signed with ADMIN_AUTH_SECRET, or with the secret that `run --dev` keeps in its data folder.\n" +
			"Nothing can revoke a token, so it ends after --ttl.",
		Example: "  curl -H \"Authorization: Bearer $(appliance token --data .appliance)\" localhost:8080/admin/consumer",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret, err := adminSecret(e, data)
			if err != nil {
				return refused(err)
			}
			keys, err := token.NewKeys(token.Settings{Algorithm: "HS256", Secret: secret})
			if err != nil {
				return refused(err)
			}
			minted, err := token.Mint(keys, subject, scopes, e.now(), ttl)
			if err != nil {
				return refused(err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), minted)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "data folder of `run --dev` to take the secret from, instead of the environment")
	cmd.Flags().StringVar(&subject, "subject", "operator", "whom the token speaks for")
	cmd.Flags().StringSliceVar(&scopes, "scope", []string{"admin:read"}, "scopes, such as admin:read,admin:write")
	cmd.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it is good")
	return cmd
}

func adminSecret(e *environment, data string) (string, error) {
	if data != "" {
		secrets, err := embedded.ReadSecrets(filepath.Clean(data))
		return secrets.Admin, err
	}
	secret, _ := e.getenv("ADMIN_AUTH_SECRET")
	if strings.TrimSpace(secret) == "" {
		return "", errors.New("ADMIN_AUTH_SECRET is not set: set it, or name the data folder of `run --dev` with --data")
	}
	return secret, nil
}
