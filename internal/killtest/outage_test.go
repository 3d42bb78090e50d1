package killtest

import (
	"strings"
	"testing"
	"time"

	"appliance/internal/testservices"
)

func outage() time.Duration {
	if *full {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// The broker is killed in mid-load, and later the database is shut down without a word. Nobody helps; afterwards there is
// no dead letter but those of the poison, no loss, and meanwhile readiness and metrics said what was the matter.
func TestBrokerAndDatabaseGoAwayInMidLoad(t *testing.T) {
	events, _ := size()
	kafka := testservices.StartKafka(t, testservices.KafkaOptions{})
	postgres := testservices.StartPostgres(t)
	s := newSetting(t, kafka.BootstrapServers, postgres.URL, 12)
	s.more = map[string]string{"LAG_REFRESH_INTERVAL": "500 millis", "LAG_REQUEST_TIMEOUT": "2 seconds"}
	l := newLoad(t, s.kafka, s.topic, events, poisonEvery)
	a := start(t, s, nil)
	url := a.awaitReady(90 * time.Second)

	l.upTo(t.Context(), t, events/3)
	kafka.Kill()
	away := time.Now()
	saysDown(t, a, url, "kafka", "health_broker")
	time.Sleep(outage() - time.Since(away))
	kafka.Start()
	saysUp(t, a, url)

	l.upTo(t.Context(), t, 2*events/3)
	postgres.Stop(true)
	away = time.Now()
	saysDown(t, a, url, "postgresql", "health_database")
	l.upTo(t.Context(), t, events)
	time.Sleep(outage() - time.Since(away))
	postgres.Start()
	saysUp(t, a, url)

	finish(t, s, l, 2, a)
}

func saysDown(t *testing.T, a *appliance, url, dependency, gauge string) {
	t.Helper()
	await(t, 20*time.Second, "readiness names "+dependency, func() bool {
		status, body := get(t, url+"/health/ready")
		_, after, found := strings.Cut(body, `"`+dependency+`":{`)
		object, _, _ := strings.Cut(after, "}")
		return status == 503 && found && strings.Contains(object, `"DOWN"`)
	}, a.log)
	await(t, 20*time.Second, gauge+" is 0", func() bool { return metric(t, url, gauge) == "0" }, a.log)
	if status, body := get(t, url+"/health/live"); status != 200 {
		t.Errorf("liveness consults a dependency: %d %s", status, body)
	}
}

func saysUp(t *testing.T, a *appliance, url string) {
	t.Helper()
	await(t, 2*time.Minute, "readiness is back", func() bool {
		status, _ := get(t, url+"/health/ready")
		return status == 200 && metric(t, url, "health_broker") == "1" && metric(t, url, "health_database") == "1"
	}, a.log)
}

// metric returns the value of a metric that has one series.
func metric(t *testing.T, url, name string) string {
	t.Helper()
	_, body := get(t, url+"/metrics")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{") {
			return strings.TrimSpace(line[strings.LastIndex(line, " "):])
		}
	}
	return ""
}
