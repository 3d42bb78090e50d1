package meter

import (
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"appliance/internal/event"
)

func fresh() *Meter { return New(Identity{Service: "appliance", Version: "v1", Instance: "host-1"}) }

// scrape reads the exposition as Prometheus does, and returns the series of one metric by their own labels, without the
// constant ones.
func scrape(t testing.TB, m *Meter) map[string]*dto.MetricFamily {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("GET /metrics: %d %s", answer.Code, answer.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns a metric's values by its labels, the constant ones left out.
func series(t testing.TB, m *Meter, name string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, one := range scrape(t, m)[name].GetMetric() {
		var labels []string
		for _, l := range one.GetLabel() {
			switch l.GetName() {
			case "service", "version", "instance":
			default:
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
		}
		key := strings.Join(labels, ",")
		switch {
		case one.Counter != nil:
			values[key] = one.Counter.GetValue()
		case one.Gauge != nil:
			values[key] = one.Gauge.GetValue()
		case one.Histogram != nil:
			values[key] = float64(one.Histogram.GetSampleCount())
		}
	}
	return values
}

func expect(t *testing.T, m *Meter, name string, want map[string]float64) {
	t.Helper()
	got := series(t, m, name)
	if fmt.Sprint(got) != fmt.Sprint(want) { // prints maps sorted, and NaN as itself
		t.Errorf("%s\ngot  %v\nwant %v", name, got, want)
	}
}

func TestEveryFactIsCountedWhereItsNameSays(t *testing.T) {
	m := fresh()
	m.BatchSize(500)
	m.BatchLatency("success", 20*time.Millisecond)
	m.BatchLatency("failure", time.Second)
	m.Persisted("order.created", 499)
	m.Persisted("order.created", 1)
	m.Duplicate(3)
	m.Retimed(2)
	m.StartPosition("g", "t", "checkpoint")
	m.OffsetGap("g", "t", 490)
	m.OffsetSkipped("g", "t", 490)
	m.TopicRecreated("g", "t")
	m.Restart("persist", "transient")
	m.SetRunning("persist", 1)
	m.SetDivergence("persist", 12)
	m.SetDLQDepth("dlq", 7)
	m.SetBroker(true)
	for name, want := range map[string]map[string]float64{
		"consume_batch_size":              {"": 1},
		"consume_batch_latency_seconds":   {"outcome=success": 1, "outcome=failure": 1},
		"consume_records_persisted_total": {"type=order.created": 500},
		"consume_records_duplicate_total": {"": 3},
		"consume_records_retimed_total":   {"": 2},
		"consume_start_positions_total":   {"from=checkpoint,group=g,topic=t": 1},
		"consume_offset_gap_records_total": {
			"group=g,topic=t": 490,
		},
		"consume_topic_recreated_total": {"group=g,topic=t": 1},
		"consume_restarts_total":        {"cause=transient,pipeline=persist": 1},
		"consume_running":               {"pipeline=persist": 1},
		"consume_checkpoint_divergence": {"pipeline=persist": 12},
		"dlq_depth":                     {"topic=dlq": 7},
		"health_broker":                 {"": 1},
		"health_database":               {"": 0},
	} {
		expect(t, m, name, want)
	}
}

func TestEverySeriesCarriesTheConstantLabels(t *testing.T) {
	m := fresh()
	m.SetLag("g", []PartitionLag{{"t", 0, 1}})
	for name, family := range scrape(t, m) {
		for _, one := range family.GetMetric() {
			got := map[string]string{}
			for _, l := range one.GetLabel() {
				got[l.GetName()] = l.GetValue()
			}
			runtime := strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
			if got["service"] != "appliance" || got["instance"] != "host-1" || !runtime && got["version"] != "v1" {
				t.Errorf("%s has %v", name, got)
			}
		}
	}
}

func TestEveryDefinitionIsInTheExpositionWithItsTypeAndLabels(t *testing.T) {
	m := fresh()
	m.BatchLatency("success", 1)
	m.Persisted("t", 1)
	m.SetLag("g", []PartitionLag{{"t", 0, 1}})
	m.SetRunning("p", 0)
	m.SetDivergence("p", 0)
	m.StartPosition("g", "t", "commit")
	m.OffsetGap("g", "t", 0)
	m.OffsetSkipped("g", "t", 0)
	m.TopicRecreated("g", "t")
	m.Restart("p", "c")
	m.SetDLQDepth("t", 0)
	families := scrape(t, m)
	for _, d := range Definitions() {
		family, ok := families[d.Name]
		if !ok {
			t.Errorf("%s is not exposed", d.Name)
			continue
		}
		if got := strings.ToLower(family.GetType().String()); got != string(d.Kind) {
			t.Errorf("%s is a %s, defined as %s", d.Name, got, d.Kind)
		}
		if got := len(family.GetMetric()[0].GetLabel()) - 3; got != len(d.Labels) {
			t.Errorf("%s has %d labels, defined with %v", d.Name, got, d.Labels)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if families[name] == nil {
			t.Errorf("%s is not exposed", name)
		}
	}
}

func TestTenThousandTypesAreAHundredAndOther(t *testing.T) { // MT-01
	m := fresh()
	var calls sync.WaitGroup
	for worker := range 4 {
		calls.Go(func() {
			for i := range 2500 {
				m.Persisted(fmt.Sprintf("type-%d", worker*2500+i), 1)
			}
		})
	}
	calls.Wait()
	got := series(t, m, "consume_records_persisted_total")
	if len(got) != 101 {
		t.Errorf("%d series, want 100 and other", len(got))
	}
	total := 0.0
	for _, n := range got {
		total += n
	}
	if total != 10000 || got["type=other"] != 9900 {
		t.Errorf("%v of 10000 counted, %v as other", total, got["type=other"])
	}
}

func TestAListThatFilledUpBetweenLookingAndAddingStaysBounded(t *testing.T) {
	f := newFirsts(1)
	f.admit("a")
	if got := f.add("b"); got != other {
		t.Errorf("added as %q", got)
	}
	if got := f.add("a"); got != "a" {
		t.Errorf("what another has added is %q", got)
	}
}

func TestATypeThatWasAmongTheFirstKeepsItsSeries(t *testing.T) {
	m := fresh()
	for i := range 200 {
		m.Persisted(fmt.Sprintf("type-%d", i), 1)
	}
	m.Persisted("type-7", 41)
	if got := series(t, m, "consume_records_persisted_total")["type=type-7"]; got != 42 {
		t.Errorf("%v, want 42", got)
	}
}

func TestAnyTextIsALabel(t *testing.T) { // MT-02
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		m := fresh()
		m.Persisted(text, 1)
		m.Poison(text, 1)
		m.BatchLatency(text, 1)
		m.StartPosition(text, text, text)
		m.OffsetGap(text, text, 1)
		m.OffsetSkipped(text, text, 1)
		m.TopicRecreated(text, text)
		m.Restart(text, text)
		m.SetRunning(text, 1)
		m.SetDivergence(text, 1)
		m.SetDLQDepth(text, 1)
		m.SetLag(text, []PartitionLag{{text, 1, 1}})
		if families, err := m.Gatherer().Gather(); err != nil || len(families) == 0 {
			t.Fatalf("%d families: %v", len(families), err)
		}
	})
}

func TestALabelIsBounded(t *testing.T) {
	m := fresh()
	m.Persisted(strings.Repeat("é", 1000), 1)
	for key := range series(t, m, "consume_records_persisted_total") {
		if len(key) > len("type=")+256 {
			t.Errorf("a label of %d bytes", len(key))
		}
	}
}

func TestAnIdentityThatIsNotUTF8StillStarts(t *testing.T) {
	m := New(Identity{Instance: "host\xff"})
	if _, err := m.Gatherer().Gather(); err != nil {
		t.Error(err)
	}
}

func TestReasonsAreAClosedListWithEverySeriesFromTheStart(t *testing.T) {
	m := fresh()
	want := map[string]float64{"reason=other": 0}
	for _, reason := range event.Reasons() {
		want["reason="+reason] = 0
	}
	expect(t, m, "consume_records_poison_total", want)
	m.Poison("no-time", 2)
	m.Poison("pq: duplicate key value 4711", 1)
	want["reason=no-time"], want["reason=other"] = 2, 1
	expect(t, m, "consume_records_poison_total", want)
}

func TestOutcomesAndOriginsAreClosedLists(t *testing.T) {
	m := fresh()
	m.BatchLatency("weird", 1)
	m.StartPosition("g", "t", "weird")
	expect(t, m, "consume_batch_latency_seconds", map[string]float64{"outcome=other": 1})
	expect(t, m, "consume_start_positions_total", map[string]float64{"from=other,group=g,topic=t": 1})
}

func TestAClosedListWithARepeatHasNoPlaceForAStranger(t *testing.T) {
	if got := closed("a", "a").admit("b"); got != other {
		t.Errorf("admitted as %q", got)
	}
}

func TestAPartitionThatLostItsLagDisappears(t *testing.T) {
	m := fresh()
	m.SetLag("g", []PartitionLag{{"t", 0, 5}, {"t", 1, 0}})
	m.SetLag("h", []PartitionLag{{"t", 0, 9}})
	expect(t, m, "consume_group_lag", map[string]float64{
		"group=g,partition=0,topic=t": 5, "group=g,partition=1,topic=t": 0, "group=h,partition=0,topic=t": 9,
	})
	m.SetLag("g", []PartitionLag{{"t", 1, 2}})
	expect(t, m, "consume_group_lag", map[string]float64{"group=g,partition=1,topic=t": 2, "group=h,partition=0,topic=t": 9})
	m.SetLag("g", nil)
	expect(t, m, "consume_group_lag", map[string]float64{"group=h,partition=0,topic=t": 9})
	m.SetLag("h", nil)
	expect(t, m, "consume_group_lag", map[string]float64{})
}

func TestAPartitionThatIsGivenTwiceDoesNotFailTheScrape(t *testing.T) {
	m := fresh()
	m.SetLag("g", []PartitionLag{{"t", 0, 5}, {"t", 0, 6}})
	expect(t, m, "consume_group_lag", map[string]float64{"group=g,partition=0,topic=t": 6})
}

func TestTwoGroupsThatAreOneLabelDoNotFailTheScrape(t *testing.T) {
	m := fresh()
	m.SetLag("g\xff", []PartitionLag{{"t", 0, 5}})
	m.SetLag("g\xfe", []PartitionLag{{"t", 0, 6}})
	expect(t, m, "consume_group_lag", map[string]float64{"group=g\uFFFD,partition=0,topic=t": 6})
}

func TestUnknownIsNaN(t *testing.T) {
	m := fresh()
	m.SetRunning("persist", math.NaN())
	m.SetDivergence("persist", math.NaN())
	m.SetDLQDepth("dlq", math.NaN())
	expect(t, m, "consume_running", map[string]float64{"pipeline=persist": math.NaN()})
	expect(t, m, "consume_checkpoint_divergence", map[string]float64{"pipeline=persist": math.NaN()})
	expect(t, m, "dlq_depth", map[string]float64{"topic=dlq": math.NaN()})
}

func TestAPipelineThatIsForgottenHasNoGauges(t *testing.T) {
	m := fresh()
	m.SetRunning("persist", 1)
	m.SetDivergence("persist", 1)
	m.ForgetPipeline("persist")
	expect(t, m, "consume_running", map[string]float64{})
	expect(t, m, "consume_checkpoint_divergence", map[string]float64{})
}

func TestANegativeCountIsNoneAndNotAPanic(t *testing.T) {
	m := fresh()
	m.Duplicate(-1)
	m.Persisted("t", -1)
	m.Poison("no-time", -1)
	m.OffsetGap("g", "t", -1)
	m.OffsetSkipped("g", "t", -1)
	expect(t, m, "consume_records_duplicate_total", map[string]float64{"": 0})
}

func TestTheExpositionIsPrometheusText(t *testing.T) {
	answer := httptest.NewRecorder()
	fresh().Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if got := answer.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4; charset=utf-8") {
		t.Errorf("content type %q", got)
	}
}

func TestTwoMetersDoNotShareARegistry(t *testing.T) {
	a, b := fresh(), fresh()
	a.Duplicate(1)
	expect(t, b, "consume_records_duplicate_total", map[string]float64{"": 0})
}
