// Package interop holds no code, only tests: records that clients nobody here wrote have put on a real Kafka (sdk-go's
// Kafka binding, Python's cloudevents) decode to the events that were sent.
package interop
