package bucket

import "errors"

// ErrSealKey is in every error of a key that answered, and does not open or seal the bundle: trying again changes
// nothing. As record.ErrRecord, it adds nothing to the error's text.
var ErrSealKey = errors.New("the seal key does not open the bundle")

// ErrNoBucket is in every error of a bucket that does not exist, and adds nothing to the error's text, either.
var ErrNoBucket = errors.New("the bucket does not exist")

// marked is an error with a sentinel that does not show in its text.
type marked struct {
	error
	sentinel error
}

// Unwrap returns the sentinel and the error's own causes.
func (m marked) Unwrap() []error { return []error{m.sentinel, m.error} }
