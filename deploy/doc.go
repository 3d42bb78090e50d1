// Package deploy holds what runs appliance elsewhere: a systemd unit, a
// container image with a compose file, alerts for Prometheus and the list of
// environment variables. Its tests hold them to the program.
package deploy
