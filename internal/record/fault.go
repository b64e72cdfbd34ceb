package record

import "errors"

// ErrRecord is in every error of a record that could not be reached, read, understood or written, so that a caller can
// tell whose fault an error is. It adds nothing to the error's text.
var ErrRecord = errors.New("the record cannot be used")

// AtFault marks an error as the record's, with ErrRecord; nil stays nil.
func AtFault(err error) error {
	if err == nil || errors.Is(err, ErrRecord) {
		return err
	}
	return atFault{err}
}

type atFault struct{ error }

// Unwrap returns the mark and the error's own causes.
func (e atFault) Unwrap() []error { return []error{ErrRecord, e.error} }
