// Package pipelines holds the configuration that the binary brings along.
package pipelines

import "embed"

// FS is the shipped configuration: a directory of HCL. Nothing assigns it.
//
//go:embed *.hcl
var FS embed.FS
