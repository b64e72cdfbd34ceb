package record

import "errors"

// ErrRecord is in every error of a record that could not be reached, read, understood or written, so that a caller can
// tell whose fault an error is. It adds nothing to the error's text.
var ErrRecord = errors.New("the record cannot be used")
