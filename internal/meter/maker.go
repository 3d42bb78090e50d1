package meter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// nativeFactor bounds the relative width of a native histogram's bucket: 1.1 reads a quantile to about five percent.
const nativeFactor = 1.1

// maker registers metrics by their definitions, each exactly once.
type maker struct {
	to          prometheus.Registerer
	definitions map[string]Definition
}

// take returns the definition of name and strikes it off.
func (m maker) take(name string, kind Kind) Definition {
	d, ok := m.definitions[name]
	if !ok || d.Kind != kind {
		panic(fmt.Sprintf("meter: no %s is defined as %s", kind, name))
	}
	delete(m.definitions, name)
	return d
}

// complete panics when a definition has no metric: it would be documented and never shown.
func (m maker) complete() {
	if len(m.definitions) > 0 {
		panic(fmt.Sprintf("meter: defined and not registered: %v", slices.Sorted(maps.Keys(m.definitions))))
	}
}

func (m maker) counter(name string) *prometheus.CounterVec {
	d := m.take(name, Counter)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Meaning}, d.Labels)
	m.to.MustRegister(v)
	return v
}

func (m maker) gauge(name string) *prometheus.GaugeVec {
	d := m.take(name, Gauge)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Meaning}, d.Labels)
	m.to.MustRegister(v)
	return v
}

func (m maker) histogram(name string) *prometheus.HistogramVec {
	d := m.take(name, Histogram)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.Name, Help: d.Meaning, Buckets: d.buckets,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: 100,
	}, d.Labels)
	m.to.MustRegister(v)
	return v
}
