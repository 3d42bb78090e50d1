package pipeline

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// hostPort says why a broker's address cannot be one.
func hostPort(v string) string {
	host, port, err := net.SplitHostPort(v)
	if err != nil || host == "" {
		return `must be host:port, such as "localhost:9092"`
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65_535 {
		return "must have a port from 1 to 65535"
	}
	return ""
}

// topicName says why a name cannot be a topic's.
func topicName(v any) string {
	name, _ := v.(string)
	if len(name) > 249 || name == "." || name == ".." || !regexp.MustCompile(`^[a-zA-Z0-9._-]+$`).MatchString(name) {
		return "must be a topic's name: 1 to 249 of the characters a-z A-Z 0-9 . _ -"
	}
	return ""
}

// databaseURL says why a URL cannot be a database's, without repeating it: it may hold a password.
func databaseURL(v any) string {
	text, _ := v.(string)
	bare, jdbc := strings.CutPrefix(text, "jdbc:")
	u, err := url.Parse(bare)
	switch {
	case text == "":
		return "must not be empty"
	case err != nil:
		return "is no URL: a password in it must be percent-encoded"
	case u.Scheme != "postgresql" && (jdbc || u.Scheme != "postgres"):
		return "must begin with postgres://, postgresql:// or jdbc:postgresql://"
	default:
		return ""
	}
}
