package interop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	sdk "github.com/cloudevents/sdk-go/v2/event"
)

// sdkEvent is the event as sdk-go holds it.
func sdkEvent(t *testing.T, s sent) sdk.Event {
	t.Helper()
	e := sdk.New()
	for name, v := range s.Attributes {
		switch name {
		case "specversion", "datacontenttype":
		case "id":
			e.SetID(v)
		case "source":
			e.SetSource(v)
		case "type":
			e.SetType(v)
		case "subject":
			e.SetSubject(v)
		case "dataschema":
			e.SetDataSchema(v)
		case "time":
			at, err := time.Parse(time.RFC3339Nano, v)
			if err != nil {
				t.Fatal(err)
			}
			e.SetTime(at)
		default:
			e.SetExtension(name, v)
		}
	}
	if contentType := s.Attributes["datacontenttype"]; contentType != "" {
		e.SetDataContentType(contentType)
		if payload := s.payload(); payload != "" {
			e.DataEncoded, e.DataBase64 = []byte(payload), s.Base64 != ""
		}
	}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventsOfSDKGoArrive(t *testing.T) {
	all := events("sdk-go")
	records := exchange(t, all, func(bootstrap, topic string) {
		conf := sarama.NewConfig()
		conf.Version = sarama.V2_8_0_0
		sender, err := kafka_sarama.NewSender(strings.Split(bootstrap, ","), conf, topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			ctx := binding.WithForceBinary(t.Context())
			if s.Mode == structured {
				ctx = binding.WithForceStructured(t.Context())
			}
			e := sdkEvent(t, s)
			if err := sender.Send(ctx, binding.ToMessage(&e)); err != nil {
				t.Fatalf("send %s: %v", s.Attributes["id"], err)
			}
		}
		if err := sender.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	keyed(t, all, records)
}
