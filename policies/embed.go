// Package policies holds the shipped authorization policies, Rego with its tests beside it, as they are built into the
// binary.
package policies

import (
	"embed"
	"io/fs"
)

//go:embed *.rego
var files embed.FS

// Files returns the policies; names that end in _test.rego are their tests.
func Files() fs.FS { return files }
