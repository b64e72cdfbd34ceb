package bucket

import (
	"errors"

	"github.com/quorate/quorate/internal/record"
)

// ErrSealKey is in every error of a key that answered, and does not open or seal the bundle: trying again changes
// nothing. As record.ErrRecord, it adds nothing to the error's text.
var ErrSealKey = errors.New("the seal key does not open the bundle")

// marked is an error with a sentinel that does not show in its text.
type marked struct {
	error
	sentinel error
}

// Unwrap returns the sentinel and the error's own causes.
func (m marked) Unwrap() []error { return []error{m.sentinel, m.error} }

// markRecord marks an error as the record's; nil stays nil.
func markRecord(err error) error {
	if err == nil || errors.Is(err, record.ErrRecord) {
		return err
	}
	return marked{err, record.ErrRecord}
}
