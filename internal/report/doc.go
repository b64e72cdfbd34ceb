// Package report is what each replica tells people from outside: a small report of how it is now, and events that say
// what happened.
//
//	report.go     a report, and what of it is a change
//	event.go      events; Changes finds them between two reports
//	outbox.go     what is written next, and when: bounded in number and bytes
//	clean.go      texts without what could be a secret
//	names.go      the names of the objects
//
// Guarantees:
//   - Nothing decides by a report or an event. The packages that decide cannot import this one, and a test says so.
//   - A report holds no secret. It consists of names, numbers, times and states. The few free texts are shortened, and
//     what looks like a key in them is left out.
//   - Reports and events are bounded: a replica that flaps writes no more than Outbox allows. What was dropped is
//     counted, and an event says so.
//
// The package is values only: it reads no clock and asks no server. Package bucket keeps the objects.
package report
