package token

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxDepth = 16 // nesting of a claim; deeper is nobody's group list

// object reads data as exactly one JSON object in UTF-8 whose names are unique at every level. At the top level a name that
// differs from one of exact in case alone is refused: Go's decoder, and others, would read it as that name.
func object(data []byte, exact ...string) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, malformed("not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, malformed("not a JSON object")
	}
	members, err := reader{decoder}.members(1)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, malformed("text after the JSON object")
	}
	for name := range members {
		for _, known := range exact {
			if name != known && strings.EqualFold(name, known) {
				return nil, malformed(known + " is spelt in another case")
			}
		}
	}
	return members, nil
}

// reader walks JSON token by token, since a decoded map no longer tells that a name came twice.
type reader struct{ *json.Decoder }

// members reads up to the closing brace; the opening one has been read.
func (r reader) members(depth int) (map[string]any, error) {
	if depth > maxDepth {
		return nil, malformed("nested too deeply")
	}
	members := map[string]any{}
	for r.More() {
		token, err := r.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, malformed("not JSON")
		}
		if _, twice := members[name]; twice {
			return nil, malformed("a name occurs twice")
		}
		if members[name], err = r.value(depth); err != nil {
			return nil, err
		}
	}
	return members, r.end()
}

// elements reads up to the closing bracket; the opening one has been read.
func (r reader) elements(depth int) ([]any, error) {
	if depth > maxDepth {
		return nil, malformed("nested too deeply")
	}
	var elements []any
	for r.More() {
		element, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	return slices.Clip(elements), r.end()
}

func (r reader) value(depth int) (any, error) {
	token, err := r.Token()
	if err != nil {
		return nil, malformed("not JSON")
	}
	switch token {
	case json.Delim('{'):
		return r.members(depth + 1)
	case json.Delim('['):
		return r.elements(depth + 1)
	}
	return token, nil
}

func (r reader) end() error {
	if _, err := r.Token(); err != nil {
		return malformed("not JSON")
	}
	return nil
}
