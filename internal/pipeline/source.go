package pipeline

import (
	"cmp"
	"io/fs"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Source is the text of one configuration: the .hcl files of one directory, without its subdirectories.
type Source struct {
	dir     fs.FS
	texts   map[string][]byte
	blocks  []*hclsyntax.Block // top level, in the order of file names and lines
	secrets *Secrets
}

// Load reads and parses. prefix is put before file names in positions, so that an editor finds them: the directory as
// its user wrote it, or "". The source is never nil: with it even the errors of Load can be printed.
func Load(dir fs.FS, prefix string) (*Source, hcl.Diagnostics) {
	s := &Source{dir: dir, texts: map[string][]byte{}, secrets: &Secrets{}}
	names, err := fs.Glob(dir, "*.hcl")
	var r report
	if _, statErr := fs.Stat(dir, "."); err == nil && statErr != nil {
		err = statErr
	}
	if err != nil {
		r.fail(CodeUnreadable, hcl.Range{Filename: cmp.Or(prefix, ".")}, "Unreadable directory", "%v.", err)
		return s, r.diags
	}
	slices.Sort(names)
	for _, name := range names {
		s.parse(name, path.Join(prefix, name), &r)
	}
	if len(s.blocks) == 0 && !r.failed() {
		r.fail(CodeEmpty, hcl.Range{Filename: cmp.Or(prefix, ".")}, "Nothing to run", "There is no block in any .hcl file here.")
	}
	return s, r.diags
}

func (s *Source) parse(name, shown string, r *report) {
	text, err := fs.ReadFile(s.dir, name)
	if err != nil {
		r.fail(CodeUnreadable, hcl.Range{Filename: shown}, "Unreadable file", "%v.", err)
		return
	}
	s.texts[shown] = text
	file, diags := hclsyntax.ParseConfig(text, shown, hcl.InitialPos)
	r.take(diags)
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return
	}
	for _, attr := range inOrder(body.Attributes) {
		r.fail(CodeUnknownArgument, attr.NameRange, "Unsupported argument", "A file has blocks only; %q stands outside of one.", attr.Name)
	}
	s.blocks = append(s.blocks, body.Blocks...)
}

// Files returns the names of the files as they are shown in positions, sorted.
func (s *Source) Files() []string {
	var names []string
	for name := range s.texts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Text returns the text of a file by its shown name.
func (s *Source) Text(name string) []byte { return s.texts[name] }
