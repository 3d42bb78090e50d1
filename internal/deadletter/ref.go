package deadletter

import (
	"fmt"
	"strconv"
	"strings"
)

// Ref names a record by its coordinates: topic/partition/offset.
func Ref(topic string, partition int32, offset int64) string {
	return topic + "/" + strconv.FormatInt(int64(partition), 10) + "/" + strconv.FormatInt(offset, 10)
}

// Origin is a ref taken apart.
type Origin struct {
	Topic     string
	Partition int32
	Offset    int64
}

// ParseRef takes a ref apart. It accepts exactly what Ref writes for coordinates that exist: a topic name of Kafka's
// alphabet, and two plain decimal numbers without sign, space or leading zero.
func ParseRef(ref string) (Origin, error) {
	parts := strings.Split(ref, "/")
	if len(parts) != 3 {
		return Origin{}, fmt.Errorf("parse ref %q: not topic/partition/offset", ref)
	}
	partition, okPartition := parseNumber(parts[1], 32)
	offset, okOffset := parseNumber(parts[2], 64)
	switch {
	case !validTopic(parts[0]):
		return Origin{}, fmt.Errorf("parse ref %q: %q is no topic name", ref, parts[0])
	case !okPartition:
		return Origin{}, fmt.Errorf("parse ref %q: %q is no partition", ref, parts[1])
	case !okOffset:
		return Origin{}, fmt.Errorf("parse ref %q: %q is no offset", ref, parts[2])
	}
	return Origin{Topic: parts[0], Partition: int32(partition), Offset: offset}, nil
}

// parseNumber reads a non-negative decimal number of that many bits, and only in its canonical form.
func parseNumber(s string, bits int) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, bits)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

// validTopic tells whether Kafka would take the name: 1 to 249 of [a-zA-Z0-9._-], neither "." nor "..".
func validTopic(name string) bool {
	if name == "" || len(name) > 249 || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
