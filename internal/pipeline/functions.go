package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// unsetError is the cause of an env call that has neither a variable nor a default.
type unsetError struct{ name string }

func (e *unsetError) Error() string {
	return fmt.Sprintf("the environment variable %s is not set, and the call has no default", e.name)
}

// functions returns what expressions may call. lookup is the environment, dir what file reads from.
func functions(lookup func(string) (string, bool), dir fs.FS, secrets *Secrets) map[string]function.Function {
	return map[string]function.Function{
		"env":      envFunction(lookup),
		"secret":   secretFunction(secrets),
		"file":     fileFunction(dir),
		"duration": durationFunction(),

		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc,
		"upper": stdlib.UpperFunc, "replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc, "substr": stdlib.SubstrFunc,
		"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "regex": stdlib.RegexFunc,
		"coalesce": stdlib.CoalesceFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"distinct": stdlib.DistinctFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "length": stdlib.LengthFunc,
		"lookup": stdlib.LookupFunc, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc,
		"jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "csvdecode": stdlib.CSVDecodeFunc,
		"tobool": to(cty.Bool), "tonumber": to(cty.Number), "tostring": to(cty.String),
	}
}

// envFunction reads a variable of the environment: env(name) fails where it is unset, env(name, default) does not.
// A variable that is set and empty is empty: an empty scope, for one, means something else than the default scope.
func envFunction(lookup func(string) (string, bool)) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "name", Type: cty.String}},
		VarParam: &function.Parameter{Name: "default", Type: cty.String, AllowNull: true, AllowMarked: true},
		Type:     function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if len(args) > 2 {
				return cty.NilVal, errors.New("takes a name and at most one default")
			}
			value, set := lookup(args[0].AsString())
			switch {
			case set:
				return cty.StringVal(value), nil
			case len(args) == 2:
				return args[1], nil
			default:
				return cty.NilVal, &unsetError{args[0].AsString()}
			}
		},
	})
}

// secretFunction marks its argument, and learns it, so that it is shown nowhere.
func secretFunction(secrets *Secrets) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.String, AllowNull: true, AllowMarked: true}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if v := plain(args[0]); v.IsKnown() && !v.IsNull() {
				secrets.learn(v.AsString())
			}
			return args[0].Mark(secretMark{}), nil
		},
	})
}

// maxFile bounds what file reads: a configuration, not a data set.
const maxFile = 1 << 20

// fileFunction reads a file of the configuration's directory, by a path relative to it.
func fileFunction(dir fs.FS) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := path.Clean(args[0].AsString())
			if !fs.ValidPath(name) {
				return cty.NilVal, errors.New("the path must stay inside the configuration's directory")
			}
			text, err := fs.ReadFile(dir, name)
			if err != nil {
				return cty.NilVal, fmt.Errorf("read file: %w", err)
			}
			if len(text) > maxFile {
				return cty.NilVal, fmt.Errorf("%s has %d bytes, more than %d", name, len(text), maxFile)
			}
			return cty.StringVal(string(text)), nil
		},
	})
}

// durationFunction takes "250ms", "250 millis", "5 seconds" or "1h 30m" and returns the engine's spelling.
func durationFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			d, err := ParseDuration(args[0].AsString())
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(d.String()), nil
		},
	})
}

func to(t cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true}},
		Type:   function.StaticReturnType(t),
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return convert.Convert(args[0], t) },
	})
}

// ParseDuration reads one or more pairs of number and unit: "250ms", "250 millis", "5 seconds", "10 minutes", "7 days",
// "1h30m", "1.5 hours"; "0" needs no unit. Negative durations are refused, and those that overflow.
func ParseDuration(text string) (time.Duration, error) {
	const shape = `a duration is a number and a unit, such as "250ms", "5 seconds" or "10 minutes"`
	rest, total := strings.TrimSpace(text), time.Duration(0)
	if rest == "0" {
		return 0, nil
	}
	pair := regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Zµμ]+)\s*`)
	for rest != "" {
		m := pair.FindStringSubmatch(rest)
		if m == nil {
			return 0, errors.New(shape)
		}
		d, err := amount(m[1], m[2])
		if err != nil {
			return 0, err
		}
		if total += d; total < 0 {
			return 0, errors.New("the duration is longer than 292 years")
		}
		rest = rest[len(m[0]):]
	}
	if strings.TrimSpace(text) == "" {
		return 0, errors.New(shape)
	}
	return total, nil
}

func amount(number, unit string) (time.Duration, error) {
	size := unitOf(unit)
	if size == 0 {
		return 0, errors.New("the unit is none of ns, us, ms, s, m, h, d or their names")
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n*float64(size) >= float64(1<<63) {
		return 0, errors.New("the duration is longer than 292 years")
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		return time.Duration(whole) * size, nil
	}
	return time.Duration(n * float64(size)), nil
}

// unitOf knows Go's units and the names that the HOCON of earlier systems used; 0 where it knows none.
func unitOf(name string) time.Duration {
	switch strings.ToLower(name) {
	case "ns", "nano", "nanos", "nanosecond", "nanoseconds":
		return time.Nanosecond
	case "us", "µs", "μs", "micro", "micros", "microsecond", "microseconds":
		return time.Microsecond
	case "ms", "milli", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	default:
		return 0
	}
}
