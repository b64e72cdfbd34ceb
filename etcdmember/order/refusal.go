package order

import "fmt"

// Refusal is an order that cannot be meant, or that does not fit what the record holds: a mistake on the command line,
// of which nothing was written. Its text says so.
type Refusal struct{ why error }

func (r *Refusal) Error() string { return r.why.Error() + "; nothing was written" }
func (r *Refusal) Unwrap() error { return r.why }

// Refuse makes a refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Errorf(format, args...)} }
