// Package systemd is the agent's side of systemd: it says how far the agent is (Notifier), pings the watchdog while the
// agent is well (Watchdog). The unit files that an image installs are in units.
//
// Everything works without systemd too: where no notify socket is given, nothing is sent and nothing fails.
//
// The protocol's words and the reading of WATCHDOG_* are go-systemd's. The sending is not: go-systemd looks
// NOTIFY_SOCKET up in the environment at each message, so the variable would have to stay where children inherit it
// (kube-apiserver sends READY=1 of its own), and it sends without a deadline, so a full socket would stop the agent.
package systemd
