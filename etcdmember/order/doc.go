// Package order is what an operator can order of a cluster. It checks an order against the record before it is written:
// whether it is needed, whether it is allowed, what it means, and how it is taken back. Of a restore it decides what it
// starts from, when it may be ordered, whom it waits for, and whose VM is stopped for it.
//
// All of it is pure: a record and the time go in, and values and sentences for people come out. The commands ask for
// flags, print, and write. How the agents follow an order is in package table, and so is what both have to know: who
// has stopped for a restore.
package order
