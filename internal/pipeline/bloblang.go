package pipeline

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/redpanda-data/benthos/v4/public/bloblang"
)

// syntax parses a mapping or an interpolated string before the engine does, so that an error has its place in the file.
func (b *binder) syntax(f *field, n *node, o operand) {
	if n.shape != leaf || f.Type != typeString {
		return
	}
	env := bloblang.NewEnvironment()
	switch {
	case f.Bloblang:
		if _, err := env.Parse(n.text()); err != nil {
			b.badMapping(n, o, err)
		}
	case f.Interpolated:
		if err := env.CheckInterpolatedString(n.text()); err != nil {
			b.fail(CodeBloblang, n.at, "Invalid interpolation", "%s: %s.", f.Name, strings.TrimSuffix(err.Error(), "."))
		}
	}
}

func (b *binder) badMapping(n *node, o operand, err error) {
	at, text := n.at, err.Error()
	if where, ok := errors.AsType[*bloblang.ParseError](err); ok {
		at = b.within(n, o, where.Line, where.Column)
		if _, after, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(text, "line ") {
			text = after
		}
	}
	b.fail(CodeBloblang, at, "Invalid mapping", "%s.", strings.TrimSuffix(strings.Join(strings.Fields(text), " "), "."))
}

// within maps a position inside a string's value to the file. A heredoc's lines are the file's lines, less the indent that
// <<- takes off; where the text of a line was changed by an escape or an interpolation, the line is right and the column
// is its beginning. A position inside an ordinary string is moved by its quote.
func (b *binder) within(n *node, o operand, line, column int) hcl.Range {
	if o.expr == nil {
		return n.at
	}
	src, at := b.sources[n.at.Filename], o.expr.Range()
	first := at.Start.Line
	if heredoc := strings.HasPrefix(string(at.SliceBytes(src)), "<<"); heredoc {
		first++
	} else if at.Start.Line != at.End.Line || line > 1 {
		return n.at
	}
	values := strings.Split(n.text(), "\n")
	if line < 1 || line > len(values) {
		return n.at
	}
	return locate(src, at.Filename, first+line-1, values[line-1], column)
}

// locate returns one character of a line of the file, given the text that the line ends with (or contains) and a 1-based
// column within that text.
func locate(src []byte, file string, line int, text string, column int) hcl.Range {
	lines, start := strings.SplitAfter(string(src), "\n"), 0
	if line > len(lines) {
		line = len(lines)
	}
	for _, l := range lines[:line-1] {
		start += len(l)
	}
	indent := strings.Index(lines[line-1], text)
	if text == "" || indent < 0 {
		indent, column = len(lines[line-1])-len(strings.TrimLeft(lines[line-1], " \t")), 1
	}
	offset := indent + len(string([]rune(text)[:min(max(column-1, 0), len([]rune(text)))]))
	pos := hcl.Pos{Line: line, Column: len([]rune(lines[line-1][:offset])) + 1, Byte: start + offset}
	end := pos
	end.Column, end.Byte = end.Column+1, min(end.Byte+1, len(src))
	return hcl.Range{Filename: file, Start: pos, End: end}
}
