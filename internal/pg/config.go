package pg

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says where a database is and how it is used.
type Config struct {
	URL       string // postgres://…, postgresql://… or jdbc:postgresql://…
	DirectURL string // the same database without a pooler between, for what needs a session; "" = URL
	User      string // where the URL names none
	Password  string // where the URL has none

	MaxConns       int           // of the pool; 0 = 4
	ConnectTimeout time.Duration // of one connection attempt; 0 = 5 s
	// TransactionPooling tells that a pooler in transaction mode stands between. Settings of a session are then left
	// out: such a pooler refuses them, or leaves them to the session's next user.
	TransactionPooling bool
}

const (
	defaultMaxConns       = 4
	defaultConnectTimeout = 5 * time.Second
)

// direct is the same configuration with the direct URL in place.
func (c Config) direct() Config {
	if c.DirectURL != "" {
		c.URL = c.DirectURL
	}
	c.TransactionPooling = false
	return c
}

// pool translates the configuration. Its errors hold no part of the URL.
func (c Config) pool() (*pgxpool.Config, error) {
	text, err := connString(c.URL)
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, parseProblem(err, text, c.Password)
	}
	cfg.MaxConns = defaultMaxConns
	if c.MaxConns > 0 {
		cfg.MaxConns = int32(min(c.MaxConns, 1<<15))
	}
	cfg.MinConns = min(cfg.MinConns, cfg.MaxConns)
	c.beside(text).connection(cfg.ConnConfig)
	return cfg, nil
}

func (c Config) connection(conn *pgx.ConnConfig) {
	if c.User != "" {
		conn.User = c.User
	}
	if c.Password != "" {
		conn.Password = c.Password
	}
	conn.ConnectTimeout = defaultConnectTimeout
	if c.ConnectTimeout > 0 {
		conn.ConnectTimeout = c.ConnectTimeout
	}
	// No named statements: they don't survive a pooler's transaction mode, and a plan that was made before a column's
	// type changed fails once with 0A000.
	conn.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.settings(conn.RuntimeParams)
}

func (c Config) settings(params map[string]string) {
	if params["application_name"] == "" {
		params["application_name"] = "appliance"
	}
	params["timezone"] = "UTC"
	if c.TransactionPooling {
		return
	}
	// A host that vanished in the middle of a batch holds its partitions' checkpoint rows until the server notices: after
	// two hours by the defaults, after half a minute with these.
	for name, value := range map[string]string{
		"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
		"idle_in_transaction_session_timeout": "30000",
	} {
		if params[name] == "" {
			params[name] = value
		}
	}
}

var errURL = errors.New("the connection URL cannot be read (it is not shown): percent-encode @ / : ? # and % in user and password")

// connString gives the URL as pgx reads it.
func connString(raw string) (string, error) {
	text := strings.TrimPrefix(raw, "jdbc:")
	if text != raw && strings.HasPrefix(text, "postgresql:") && !strings.HasPrefix(text, "postgresql://") {
		// jdbc:postgresql:database and jdbc:postgresql:/ mean the local server.
		text = "postgresql://localhost/" + strings.TrimLeft(strings.TrimPrefix(text, "postgresql:"), "/")
	}
	scheme, _, found := strings.Cut(text, "://")
	if !found || (scheme != "postgres" && scheme != "postgresql") {
		return "", errors.New("the connection URL must begin with postgres://, postgresql:// or jdbc:postgresql://")
	}
	if text == raw {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errURL
	}
	values, err := fromJDBC(u.Query())
	if err != nil {
		return "", err
	}
	u.RawQuery = values.Encode()
	return u.String(), nil
}

// fromJDBC renames the parameters of pgjdbc that have an equal here, drops those that tune only that driver, and refuses
// the others, since a server would refuse them one connection later and less clearly.
func fromJDBC(in url.Values) (url.Values, error) {
	out := url.Values{}
	for name := range in {
		value := in.Get(name)
		switch name {
		case "user", "password", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslpassword", "options":
			out.Set(name, value)
		case "ssl":
			if value != "false" && !in.Has("sslmode") {
				out.Set("sslmode", "verify-full")
			}
		case "currentSchema":
			out.Set("search_path", value)
		case "ApplicationName":
			out.Set("application_name", value)
		case "targetServerType":
			out.Set("target_session_attrs", targetSession(value))
		case "loginTimeout", "connectTimeout", "socketTimeout", "tcpKeepAlive", "prepareThreshold", "binaryTransfer",
			"preparedStatementCacheQueries", "preparedStatementCacheSizeMiB", "reWriteBatchedInserts", "defaultRowFetchSize",
			"stringtype", "assumeMinServerVersion", "loggerLevel", "loggerFile", "autosave", "cleanupSavepoints",
			"preferQueryMode", "databaseMetadataCacheFields", "logUnclosedConnections":
		default:
			return nil, fmt.Errorf("the JDBC URL's parameter %q is unknown here", name)
		}
	}
	return out, nil
}

func targetSession(jdbc string) string {
	switch jdbc {
	case "primary", "master":
		return "primary"
	case "secondary", "slave":
		return "standby"
	case "preferSecondary", "preferSlave":
		return "prefer-standby"
	default:
		return "any"
	}
}

// parseProblem says what pgx found wrong, without any secret that the URL holds.
func parseProblem(err error, text, password string) error {
	u, bad := url.Parse(text)
	if bad != nil {
		return errURL
	}
	// The driver's text is: cannot parse `URL`: what is wrong (cause).
	message := err.Error()
	message = message[strings.LastIndex(message, "`: ")+1:]
	message = strings.TrimPrefix(message, ": ")
	inURL, _ := u.User.Password()
	for _, secret := range []string{password, inURL, u.Query().Get("password"), u.Query().Get("sslpassword")} {
		if secret != "" {
			message = strings.ReplaceAll(message, secret, "(secret)")
		}
	}
	return errors.New("the connection URL cannot be used: " + message)
}
