package appliance.authz_test

import data.appliance.authz

config := {"read_scope": "admin:read", "write_scope": "admin:write"}

request(method, route, scopes) := {
	"method": method,
	"route": route,
	"authentication": "verified",
	"principal": {"subject": "ada", "scopes": scopes},
}

anonymous(method, route) := {"method": method, "route": route, "authentication": "none"}

test_open_routes_need_no_token if {
	every route in ["/metrics", "/health/live", "/health/ready", "/openapi.json", "/openapi.yaml", "/docs"] {
		authz.allow with input as anonymous("GET", route) with data.appliance.config as config
	}
}

test_an_open_route_is_open_for_reading_only if {
	not authz.allow with input as anonymous("POST", "/metrics") with data.appliance.config as config
}

test_a_route_that_merely_begins_like_an_open_one_is_not_open if {
	every route in ["/metrics/", "/metricsx", "/health", "/admin/metrics", "/docs/x"] {
		not authz.allow with input as anonymous("GET", route) with data.appliance.config as config
	}
}

test_nobody_reads_admin_without_a_token if {
	not authz.allow with input as anonymous("GET", "/admin/consumer") with data.appliance.config as config
}

test_nobody_changes_anything_without_a_token if {
	not authz.allow with input as anonymous("POST", "/admin/consumer:pause") with data.appliance.config as config
}

test_the_read_scope_reads if {
	every method in ["GET", "HEAD"] {
		authz.allow with input as request(method, "/admin/consumer", ["admin:read"]) with data.appliance.config as config
	}
}

test_the_read_scope_changes_nothing if {
	every method in ["POST", "PUT", "PATCH", "DELETE"] {
		not authz.allow with input as request(method, "/admin/consumer:pause", ["admin:read"]) with data.appliance.config as config
	}
}

test_the_write_scope_changes_and_reads if {
	every method in ["POST", "GET"] {
		authz.allow with input as request(method, "/admin/dlq", ["admin:write"]) with data.appliance.config as config
	}
}

test_scopes_match_as_a_whole if {
	every scope in ["admin:read2", "xadmin:read", "admin:", "ADMIN:READ", "admin:read,admin:write", "admin", ""] {
		not authz.allow with input as request("GET", "/admin/consumer", [scope]) with data.appliance.config as config
	}
}

test_scopes_that_are_one_string_grant_nothing if {
	not authz.allow with input as request("GET", "/admin/consumer", "admin:read") with data.appliance.config as config
}

test_a_scope_of_an_unverified_principal_counts_for_nothing if {
	forged := object.union(request("GET", "/admin/consumer", ["admin:read"]), {"authentication": "none"})
	not authz.allow with input as forged with data.appliance.config as config
}

test_an_empty_read_scope_takes_any_verified_token_for_reading_only if {
	any_reader := {"read_scope": "", "write_scope": "admin:write"}
	authz.allow with input as request("GET", "/admin/consumer", []) with data.appliance.config as any_reader
	not authz.allow with input as request("POST", "/admin/consumer:pause", []) with data.appliance.config as any_reader
	not authz.allow with input as anonymous("GET", "/admin/consumer") with data.appliance.config as any_reader
}

test_an_empty_write_scope_takes_any_verified_token if {
	any_writer := {"read_scope": "admin:read", "write_scope": ""}
	authz.allow with input as request("POST", "/admin/consumer:pause", []) with data.appliance.config as any_writer
	not authz.allow with input as anonymous("POST", "/admin/consumer:pause") with data.appliance.config as any_writer
}

test_a_missing_configuration_grants_nothing_behind_the_open_routes if {
	not authz.allow with input as request("GET", "/admin/consumer", ["admin:read"]) with data.appliance.config as {}
}

test_disabled_authentication_opens_everything if {
	open := {"method": "POST", "route": "/admin/consumer:pause", "authentication": "disabled"}
	authz.allow with input as open with data.appliance.config as config
	authz.rule == "authentication_disabled" with input as open with data.appliance.config as config
}

test_only_routes_under_admin_are_granted_by_scope if {
	not authz.allow with input as request("GET", "/secret", ["admin:read", "admin:write"]) with data.appliance.config as config
}

test_an_empty_input_is_denied if {
	not authz.allow with input as {} with data.appliance.config as config
	not authz.allow with input as null with data.appliance.config as config
}

test_the_log_learns_by_which_grant if {
	authz.rule == "open_route" with input as anonymous("GET", "/metrics") with data.appliance.config as config
	authz.rule == "read_scope" with input as request("GET", "/admin/dlq", ["admin:read"]) with data.appliance.config as config
	authz.rule == "write_scope" with input as request("GET", "/admin/dlq", ["admin:write"]) with data.appliance.config as config
}
