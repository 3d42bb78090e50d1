package meter

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// PartitionLag is one partition's lag in records.
type PartitionLag struct {
	Topic     string
	Partition int32
	Lag       int64
}

// lags is the gauge of all groups' lag. Each group's rows are replaced as a whole, so that a partition that lost its value
// disappears from the exposition: frozen at its last value it could not be told from a consumer that is stuck.
type lags struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	groups map[string][]PartitionLag
}

func newLags(d Definition) *lags {
	return &lags{
		desc:   prometheus.NewDesc(d.Name, d.Meaning, d.Labels, nil),
		groups: map[string][]PartitionLag{},
	}
}

// set replaces the rows of group; no rows remove it.
func (l *lags) set(group string, rows []PartitionLag) {
	unique := map[string]PartitionLag{} // two rows of one partition would fail the whole scrape
	for _, row := range rows {
		row.Topic = label(row.Topic)
		unique[row.Topic+"/"+strconv.Itoa(int(row.Partition))] = row
	}
	kept := make([]PartitionLag, 0, len(unique))
	for _, row := range unique {
		kept = append(kept, row)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.groups[label(group)] = kept
}

// Describe sends the one description.
func (l *lags) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

// Collect sends a gauge per partition that has a value now.
func (l *lags) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for group, rows := range l.groups {
		for _, row := range rows {
			out <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, float64(row.Lag),
				group, row.Topic, strconv.Itoa(int(row.Partition)))
		}
	}
}

var _ prometheus.Collector = (*lags)(nil)
