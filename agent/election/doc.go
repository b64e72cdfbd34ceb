// Package election runs what one replica at a time may run: while this agent holds a Lease, and never longer.
//
//	client-go's elector ── renews ──► lock ──► the Lease, at every other try of its holder's
//	                                   │ when the last renewal that succeeded began
//	                                   ▼
//	term ── when it is time, by a clock that counts suspends ──► go on, ask to end, kill
//
// client-go decides who tries to take the Lease. It does not promise that a leader has ended before the next one
// begins: it counts from the answer to a renewal instead of its request, goes on for its deadline after another has
// taken the Lease, and does not notice that the machine was suspended. So the term has a time of its own: the Lease's
// duration from the begin of the last request to renew it that succeeded. Others cannot have seen that renewal
// earlier, and wait for the whole duration after they saw it. What runs is asked to end, then killed, a second before
// that. The Lease is given back only once nothing runs any more.
//
// Limits: a process cannot be killed while the machine stands still; after a suspend that the kernel knows of, it runs
// for up to 100 ms more. After one that the kernel does not know of, it runs until the next try sees who has the Lease,
// or the next renewal is refused: one retry period later, or two. The agent's own process has to run: one that is
// stopped by a signal ends nothing until systemd's watchdog has ended it. Clocks that run at rates that differ by more
// than a tenth end the promise, and so does a person who deletes the Lease.
package election
