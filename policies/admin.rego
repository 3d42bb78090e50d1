# Who may do what on the admin listener.
#
# input.method          the request's verb
# input.route           the pattern of the route, e.g. "/admin/dlq:replay"
# input.params          path and query parameters by name
# input.authentication  "verified", "none" or, where the configuration turned it off, "disabled"
# input.principal       subject, issuer, scopes and claims of the verified token; absent without one
#
# data.appliance.config.read_scope and .write_scope name the scopes; "" stands for any verified token.
package appliance.authz

# Only this rule decides, and only the boolean true allows. `rule` says by which grant, for the decision log.
default allow := false

allow if rule

rule := "open_route" if {
	open_route
} else := "authentication_disabled" if {
	input.authentication == "disabled"
} else := "write_scope" if {
	admin_route
	holds(data.appliance.config.write_scope)
} else := "read_scope" if {
	admin_route
	reads
	holds(data.appliance.config.read_scope)
}

# Who scrapes and who probes can hold no token, and the documents are the same in every deployment.
open_route if {
	reads
	input.route in {
		"/metrics",
		"/health/live",
		"/health/ready",
		"/openapi.json",
		"/openapi.yaml",
		"/docs",
	}
}

admin_route if startswith(input.route, "/admin/")

reads if input.method in {"GET", "HEAD"}

# A scope counts as a whole and exactly, and for a verified token alone.
holds(scope) if {
	input.authentication == "verified"
	scope in input.principal.scopes
}

holds("") if input.authentication == "verified"
