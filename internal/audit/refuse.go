package audit

import (
	"fmt"
	"slices"
	"strings"

	"appliance/internal/broker"
	"appliance/internal/intake"
)

// OptionError is an option that there is nothing to audit by. Nothing was read.
type OptionError struct {
	Option  string // from, to, partition or group: as its flag is called
	Problem string // what was given, and what there is
}

// Error names the option and what there is instead.
func (e *OptionError) Error() string { return "--" + e.Option + " " + e.Problem }

// check refuses a range that is none whatever the logs are.
func (o Options) check() error {
	switch {
	case o.From != nil && *o.From < 0:
		return &OptionError{"from", fmt.Sprintf("%d: offsets begin at 0", *o.From)}
	case o.To != nil && *o.To < 1:
		return &OptionError{"to", fmt.Sprintf("%d: no offset lies before it, it has to be at least 1", *o.To)}
	case o.From != nil && o.To != nil && *o.From >= *o.To:
		return &OptionError{"from", fmt.Sprintf("%d: has to be less than --to %d, which is not in the range itself", *o.From, *o.To)}
	}
	return nil
}

// checkPartitions refuses a partition that no topic has.
func (o Options) checkPartitions(topics map[string]broker.Found) error {
	for _, wanted := range o.Partitions {
		var there []string
		found := false
		for topic, t := range topics {
			found = found || slices.Contains(t.Partitions, wanted)
			there = append(there, fmt.Sprintf("%s has 0…%d", topic, len(t.Partitions)-1))
		}
		if !found {
			slices.Sort(there)
			return &OptionError{"partition", fmt.Sprintf("%d: there is none; %s", wanted, strings.Join(there, ", "))}
		}
	}
	return nil
}

// checkRange refuses a range in which no partition has an offset: all of nothing would be proven. Without a range an
// empty log is what it is.
func (o Options) checkRange(parts map[intake.TP]*part) error {
	option, at := "from", o.From
	if at == nil {
		option, at = "to", o.To
	}
	if at == nil {
		return nil
	}
	var there []string
	for _, tp := range broker.Sorted(parts) {
		p := parts[tp]
		if p.book.from < p.book.until {
			return nil
		}
		there = append(there, fmt.Sprintf("%s/%d has [%d, %d)", tp.Topic, tp.Partition, p.log.Start, p.readable.End))
	}
	return &OptionError{option, fmt.Sprintf("%d: no partition has an offset in the range; %s", *at, strings.Join(there, ", "))}
}

// checkGroup refuses a group that never was, where it was asked for by name: each record would be pending.
func (o Options) checkGroup(group string, parts map[intake.TP]*part) error {
	if !o.GroupMustExist {
		return nil
	}
	for _, p := range parts {
		if p.checkpoint != nil || p.committed != nil {
			return nil
		}
	}
	return &OptionError{"group", group + ": it has neither a checkpoint nor a commit in these partitions"}
}
