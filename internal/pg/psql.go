package pg

import "net/url"

// PSQL returns the URL in the form that psql takes, with user and password in it; "" where the URL is refused. It is a
// secret.
func (c Config) PSQL() string {
	text, err := connString(c.URL)
	if err != nil {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	c = c.beside(text)
	switch {
	case c.User != "" && c.Password != "":
		u.User = url.UserPassword(c.User, c.Password)
	case c.User != "":
		u.User = url.User(c.User)
	case c.Password != "":
		u.User = url.UserPassword(u.User.Username(), c.Password)
	}
	return u.String()
}

// beside leaves of User and Password what the URL doesn't say itself.
func (c Config) beside(text string) Config {
	u, err := url.Parse(text)
	if err != nil {
		return c
	}
	if u.User.Username() != "" || u.Query().Has("user") {
		c.User = ""
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		c.Password = ""
	}
	return c
}
